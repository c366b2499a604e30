import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.helpers.claims import count, evidence, in_favour_by_claim
from vitscope.claims.points import Points

DEPTHS = [0, 0.25, 0.5, 0.75, 1]


def accuracies(**of: list[float]) -> pd.DataFrame:
    """A table of linear probes that are as accurate, and of neighbours that are never right."""
    tables = [
        pd.DataFrame({"index": range(5), "depth": DEPTHS, "of": name, "accuracy": values})
        for name, values in of.items()
    ]
    linear = pd.concat(tables).assign(model="m", by="linear", kind="msa", images=10)
    return pd.concat([linear, linear.assign(by="neighbours", accuracy=0.0)], ignore_index=True)


MEAN, PREFIX = [0.1, 0.3, 0.2, 0.5, 0.4], [0.1, 0.1, 0.1, 0.4, 0.5]
TABLE_ = accuracies(mean=MEAN, prefix=PREFIX, token=[0.0] * 5)
EXAMPLES = {"probe": {"probe": TABLE_, "blocks": TABLE_}}


@pytest.mark.parametrize(
    ("mean", "prefix", "expected"),
    [
        # Ranks 1 3 2 5 4: 1 - 6 * 4 / (5 * 24); leads 4 1 2.5 2.5 5: 3.5 / √95.
        (MEAN, PREFIX, (0.8, 0.3591)),
        (MEAN[::-1], PREFIX[::-1], (-0.8, -0.3591)),
        (MEAN, None, (0.8, None)),
    ],
)
def test_by_hand(mean: list[float], prefix: list[float] | None, expected: tuple) -> None:
    table = accuracies(mean=mean, **({"prefix": prefix} if prefix else {}))
    found = in_favour_by_claim("probe", table)
    names = "classes_are_easier_to_read_with_depth", "class_token_comes_up_with_depth"
    for name, value in zip(names, expected, strict=True):
        if value is not None:
            assert found.pop(name) == (pytest.approx(value, abs=1e-4), value > 0)
    assert not found


def test_each_resample_is_found_as_the_values_are() -> None:
    found = np.random.default_rng(0).integers(0, 11, (2, 40, 5)) / 10
    table = accuracies(mean=[*found[0, 0]], prefix=[*found[1, 0]])
    lists = [*found[:, 1:].transpose(0, 2, 1).reshape(10, -1).astype(np.float32), *[None] * 10]
    of = evidence("probe")
    points = Points(of.measured(table.assign(accuracy_resampled=lists), table))
    easier, comes_up = (claim.statistic.find(points).values for claim in of.claims)
    expected = [spearmanr(DEPTHS, each).statistic for each in found[0]]
    np.testing.assert_allclose(easier, expected, atol=1e-12)
    # Leads are whole tenths: those that differ by rounding are equal.
    leads = np.rint(10 * (found[1] - found[0]))
    expected = [spearmanr(DEPTHS, each).statistic for each in leads]
    np.testing.assert_allclose(comes_up, expected, atol=1e-12)


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


TOKENS = differences([0.1, 0.4, NONE], [0.5, 0.3, NONE], [20, 90, 95])
EXAMPLES["probe_tokens"] = {"probe_tokens": TOKENS, "blocks": TOKENS}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # The most outliers of which anything is said, and there the target that differs less.
        (TOKENS, 0.3),
        (differences([0.1, 0.0, 0.2], [0.5, 0.3, NONE], [20, 20, 5]), 0.1),
        (differences([NONE] * 3, [NONE] * 3, [0] * 3), None),
    ],
)
def test_tokens_by_hand(table: pd.DataFrame, expected: float | None) -> None:
    claims = count("probe_tokens", {"probe_tokens": table, "blocks": table}, ["m"])
    if expected is None:
        assert claims.empty
        return
    (row,) = claims.to_dict("records")
    assert row["claim"] == "outliers_know_less_of_their_place"
    assert row["measured_value"] == expected
    assert row["holds"] == "yes, without an interval"
