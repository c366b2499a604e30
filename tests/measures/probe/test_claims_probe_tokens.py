"""The claim about outliers, counted by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import count

NONE = float("nan")


def differences(position: list[float], pixels: list[float], outliers: list[int]) -> pd.DataFrame:
    tables = [
        pd.DataFrame(
            {"index": range(3), "target": target, "outliers": outliers, "difference": found}
        )
        for target, found in (("position", position), ("pixels", pixels))
    ]
    table = pd.concat(tables, ignore_index=True)
    return table.assign(model="m", kind="msa", depth=table["index"] / 2)


TABLE_ = differences([0.1, 0.4, NONE], [0.5, 0.3, NONE], [20, 90, 95])
EXAMPLES = {"probe_tokens": {"probe_tokens": TABLE_, "blocks": TABLE_}}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # The most outliers of which anything is said, and there the target that differs less.
        (TABLE_, 0.3),
        (differences([0.1, 0.0, 0.2], [0.5, 0.3, NONE], [20, 20, 5]), 0.1),
        (differences([NONE] * 3, [NONE] * 3, [0] * 3), None),
    ],
)
def test_by_hand(table: pd.DataFrame, expected: float | None) -> None:
    claims = count("probe_tokens", {"probe_tokens": table, "blocks": table}, ["m"])
    if expected is None:
        assert claims.empty
        return
    (row,) = claims.to_dict("records")
    assert row["claim"] == "outliers_know_less_of_their_place"
    assert row["measured_value"] == expected
    assert row["holds"] == "yes, without an interval"


def test_in_each_resample_it_is_the_target_that_differs_less() -> None:
    resampled = np.random.default_rng(0).normal(0.4, 0.1, (6, 100))
    lists = [*resampled[:2], None, *resampled[3:5], None]
    table = TABLE_.assign(difference_resampled=lists)
    claims = count("probe_tokens", {"probe_tokens": table, "blocks": table}, ["m"])
    (row,) = claims.to_dict("records")
    # Those of the second cut point, of its position and its pixels.
    least = np.percentile(np.minimum(resampled[1], resampled[4]), [2.5, 97.5])
    assert (row["measured_low"], row["measured_high"]) == pytest.approx(tuple(least), rel=1e-12)
    assert row["measured_value"] == 0.3
    assert row["holds"] == "yes, in this network"
