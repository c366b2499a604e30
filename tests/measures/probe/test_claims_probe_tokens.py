"""The claim about outliers, counted by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import count

NONE = float("nan")


def differences(position: list[float], pixels: list[float], outliers: list[int]) -> pd.DataFrame:
    tables = [
        pd.DataFrame({"index": range(3), "target": target, "outliers": outliers, "r2": 0.5,
                      "difference": found, "difference_low": np.asarray(found) - 0.1,
                      "difference_high": np.asarray(found) + 0.2})
        for target, found in (("position", position), ("pixels", pixels))
    ]  # fmt: skip
    table = pd.concat(tables, ignore_index=True)
    return table.assign(model="m", kind="msa", depth=table["index"] / 2)


TABLE_ = differences([0.1, 0.4, NONE], [0.5, 0.3, NONE], [20, 90, 95])
EXAMPLES = {"probe_tokens": {"probe_tokens": TABLE_, "blocks": TABLE_}}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # The most outliers of which anything is said, and there the target that differs less.
        (TABLE_, (0.3, 0.2, 0.5)),
        (differences([0.1, 0.0, 0.2], [0.5, 0.3, NONE], [20, 20, 5]), (0.1, 0.0, 0.3)),
        (differences([NONE] * 3, [NONE] * 3, [0] * 3), None),
    ],
)
def test_by_hand(table: pd.DataFrame, expected: tuple[float, ...] | None) -> None:
    claims = count("probe_tokens", {"probe_tokens": table, "blocks": table}, ["m"])
    if expected is None:
        assert claims.empty
        return
    (row,) = claims.to_dict("records")
    assert row["claim"] == "outliers_know_less_of_their_place"
    found = row["measured_value"], row["ci_low"], row["ci_high"]
    assert found == pytest.approx(expected)
