import pandas as pd
import pytest

from tests.helpers.claims import count, in_favour, variances

KINDS = ["stem", "msa", "mlp", "msa", "mlp"]


def similarities(values: list[float], sizes: list[int] | None = None) -> pd.DataFrame:
    table = variances("m", KINDS, sizes or [8] * 5, values)
    return table.rename(columns={"variance": "similarity"})


TABLE_ = similarities([0.1, 0.4, 0.3, 0.5, 0.6])
EXAMPLES = {"token_similarity": {"token_similarity": TABLE_, "blocks": TABLE_}}


def counted(table: pd.DataFrame) -> dict[str, tuple[float, bool]]:
    claims = count("token_similarity", {"token_similarity": table, "blocks": table}, ["m"])
    return {
        row["claim"]: (row["measured_value"], in_favour(row)) for row in claims.to_dict("records")
    }


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


KINDS_OF_BLOCKS = ["stem", "msa", "mlp", "msa", "mlp"]


def shares(values: list[float]) -> pd.DataFrame:
    table = variances("m", KINDS_OF_BLOCKS, [8, 8, 8, 4, 4], values)
    return table.rename(columns={"variance": "share"})


MEAN_TOKEN = shares([0.1, 0.4, 0.3, 0.9, 0.6])
OF_MEAN_TOKEN = {"mean_token": {"mean_token": MEAN_TOKEN, "blocks": MEAN_TOKEN}}
EXAMPLES |= OF_MEAN_TOKEN


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
    table = shares(values)
    claims = count("mean_token", {"mean_token": table, "blocks": table}, ["m"])
    found = {
        row["claim"]: (row["measured_value"], in_favour(row)) for row in claims.to_dict("records")
    }
    assert found == {
        "mean_token_takes_over": (pytest.approx(rank), rank > 0),
        "msas_raise_the_mean_token": (pytest.approx(difference), difference > 0),
    }
