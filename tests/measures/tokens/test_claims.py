import pandas as pd
import pytest

from tests.helpers.claims import in_favour_by_claim, variances

KINDS = ["stem", "msa", "mlp", "msa", "mlp"]
# The second MSA subsamples.
HALVED = [8, 8, 8, 4, 4]


def table(column: str, values: list[float], sizes: list[int] | None = None) -> pd.DataFrame:
    return variances("m", KINDS, sizes or [8] * 5, values).rename(columns={"variance": column})


def ranks(values: list[float], sizes: list[int] | None = None) -> pd.DataFrame:
    tokens = table("effective_rank", values, sizes).assign(channels=16, of="tokens")
    # What images have does not count.
    images = tokens.assign(of="images", effective_rank=range(5))
    return pd.concat([tokens, images], ignore_index=True)


SIMILARITY = table("similarity", [0.1, 0.4, 0.3, 0.5, 0.6])
MEAN_TOKEN = table("share", [0.1, 0.4, 0.3, 0.9, 0.6], HALVED)
RANKS = ranks([9, 6, 7, 5, 5.5])
WIDER = ranks([9, 6, 7, 1, 2])
WIDER.loc[WIDER["index"] > 2, "channels"] = 32
EXAMPLES = {
    "token_similarity": {"token_similarity": SIMILARITY, "blocks": SIMILARITY},
    "mean_token": {"mean_token": MEAN_TOKEN, "blocks": MEAN_TOKEN},
    "effective_rank": {"singular_values": RANKS, "blocks": RANKS},
}
CLAIMS = {
    "token_similarity": ("tokens_become_alike", "msas_make_tokens_alike"),
    "mean_token": ("mean_token_takes_over", "msas_raise_the_mean_token"),
    "effective_rank": ("rank_of_tokens_falls", "msas_lower_the_rank"),
}


@pytest.mark.parametrize(
    ("kind", "made", "correlation", "difference"),
    [
        # Ranks 1 3 2 4 5: two neighbours are swapped, 1 - 6 * 2 / (5 * 24). MSAs add 0.3 and 0.2,
        # MLPs -0.1 and 0.1.
        ("token_similarity", SIMILARITY, 0.9, 0.25),
        ("token_similarity", table("similarity", [0.6, 0.3, 0.5, 0.1, 0.2]), -0.8, -0.5),
        # Ranks 1 3 2 5 4: 1 - 6 * 4 / (5 * 24). Blocks that subsample do not count: 0.3 of the
        # first MSA, less the mean of -0.1 and -0.3.
        ("token_similarity", MEAN_TOKEN.rename(columns={"share": "similarity"}), 0.8, 0.5),
        ("mean_token", MEAN_TOKEN, 0.8, 0.5),
        ("mean_token", table("share", [0.9, 0.6, 0.7, 0.1, 0.4], HALVED), -0.8, -0.5),
        # Values that do not change tell nothing of depth.
        ("token_similarity", table("similarity", [0.5] * 5), None, 0),
        # Ranks 5 3 4 1 2 against 1 to 5: squares of differences 16, 1, 1, 9, 9. MLPs add 1 and 0.5,
        # MSAs -3 and -2.
        ("effective_rank", RANKS, 6 * 36 / 120 - 1, 0.75 + 2.5),
        ("effective_rank", ranks([1, 3, 2, 5, 4]), -0.8, -1 - 2.5),
        # Maps that change their size or their channels: the mean of 1 and 1, less -3.
        ("effective_rank", ranks([9, 6, 7, 1, 2], HALVED), None, 4),
        ("effective_rank", WIDER, None, 4),
    ],
)
def test_by_hand(
    kind: str, made: pd.DataFrame, correlation: float | None, difference: float
) -> None:
    values = zip(CLAIMS[kind], (correlation, difference), strict=True)
    assert in_favour_by_claim(kind, made) == {
        claim: (pytest.approx(value), value > 0) for claim, value in values if value is not None
    }
