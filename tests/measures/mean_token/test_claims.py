"""Claims about the share of the mean token, counted by hand."""

import pandas as pd
import pytest

from tests.helpers.claims import count, in_favour, variances

KINDS = ["stem", "msa", "mlp", "msa", "mlp"]


def shares(values: list[float]) -> pd.DataFrame:
    table = variances("m", KINDS, [8, 8, 8, 4, 4], values)
    return table.rename(columns={"variance": "share"})


TABLE_ = shares([0.1, 0.4, 0.3, 0.9, 0.6])
EXAMPLES = {"mean_token": {"mean_token": TABLE_, "blocks": TABLE_}}


@pytest.mark.parametrize(
    ("values", "rank", "difference"),
    [
        # Ranks 1 3 2 5 4: 1 - 6 * 4 / (5 * 24). The second MSA subsamples and does not count: 0.3
        # of the first, less the mean of -0.1 and -0.3.
        ([0.1, 0.4, 0.3, 0.9, 0.6], 0.8, 0.5),
        ([0.9, 0.6, 0.7, 0.1, 0.4], -0.8, -0.5),
    ],
)
def test_by_hand(values: list[float], rank: float, difference: float) -> None:
    table = shares(values)
    claims = count("mean_token", {"mean_token": table, "blocks": table}, ["m"])
    found = {
        row["claim"]: (row["measured_value"], in_favour(row)) for row in claims.to_dict("records")
    }
    assert found == {
        "mean_token_takes_over": (pytest.approx(rank), rank > 0),
        "msas_raise_the_mean_token": (pytest.approx(difference), difference > 0),
    }
