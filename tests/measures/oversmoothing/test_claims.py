import pandas as pd
import pytest

from tests.helpers.claims import in_favour_by_claim, variances

KINDS = ["stem", "msa", "mlp", "msa", "mlp"]


def table(column: str, values: list[float], sizes: list[int]) -> pd.DataFrame:
    return variances("m", KINDS, sizes, values).rename(columns={"variance": column})


def similarities(values: list[float], sizes: list[int] | None = None) -> pd.DataFrame:
    return table("similarity", values, sizes or [8] * 5)


TABLE_ = similarities([0.1, 0.4, 0.3, 0.5, 0.6])
MEAN_TOKEN = table("share", [0.1, 0.4, 0.3, 0.9, 0.6], [8, 8, 8, 4, 4])
EXAMPLES = {
    "token_similarity": {"token_similarity": TABLE_, "blocks": TABLE_},
    "mean_token": {"mean_token": MEAN_TOKEN, "blocks": MEAN_TOKEN},
}


def counted(table: pd.DataFrame) -> dict[str, tuple[float, bool | None]]:
    return in_favour_by_claim("token_similarity", table)


def test_by_hand() -> None:
    found = counted(TABLE_)
    # Ranks 1 3 2 4 5: two neighbours are swapped, 1 - 6 * 2 / (5 * 24).
    assert found["tokens_become_alike"] == (pytest.approx(0.9), True)
    # MSAs add 0.3 and 0.2, MLPs -0.1 and 0.1.
    assert found["msas_make_tokens_alike"] == (pytest.approx(0.25), True)


def test_the_other_way_round() -> None:
    found = counted(similarities([0.6, 0.3, 0.5, 0.1, 0.2]))
    assert {holds for _, holds in found.values()} == {False}


def test_blocks_that_subsample_are_left_out() -> None:
    found = counted(similarities([0.1, 0.4, 0.3, 0.9, 0.6], [8, 8, 8, 4, 4]))
    # The second MSA subsamples: 0.3 less the mean of -0.1 and -0.3.
    assert found["msas_make_tokens_alike"][0] == pytest.approx(0.5)


def test_values_that_do_not_change_tell_nothing() -> None:
    assert "tokens_become_alike" not in counted(similarities([0.5] * 5))


@pytest.mark.parametrize(
    ("values", "rank", "difference"),
    [
        # Ranks 1 3 2 5 4: 1 - 6 * 4 / (5 * 24). The second MSA subsamples and does not count: 0.3
        # of the first, less the mean of -0.1 and -0.3.
        ([0.1, 0.4, 0.3, 0.9, 0.6], 0.8, 0.5),
        ([0.9, 0.6, 0.7, 0.1, 0.4], -0.8, -0.5),
    ],
)
def test_mean_token_by_hand(values: list[float], rank: float, difference: float) -> None:
    shares = table("share", values, [8, 8, 8, 4, 4])
    assert in_favour_by_claim("mean_token", shares) == {
        "mean_token_takes_over": (pytest.approx(rank), rank > 0),
        "msas_raise_the_mean_token": (pytest.approx(difference), difference > 0),
    }
