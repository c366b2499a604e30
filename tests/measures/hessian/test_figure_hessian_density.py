"""The figure of the spectral density of the Hessian shows its table."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT
from vitscope.measures.hessian.figure import shares_of_bars

MEMBERS = (RESNET, VIT)


def rows_of(model: str, snapshot: str) -> pd.DataFrame:
    """Four quadratures of eleven nodes: nearly all of the weight near zero."""
    random = np.random.default_rng([len(model), len(snapshot)])
    weights = random.random((4, 11)) * np.geomspace(1, 1e-6, 11)
    return pd.DataFrame(
        {
            "model": model,
            "snapshot": snapshot,
            "batch": np.repeat([0, 1], 22),
            "probe": np.tile(np.repeat([0, 1], 11), 2),
            "node": (
                np.r_[0, -np.geomspace(1, 40, 4), np.geomspace(1, 300, 6)][None]
                + random.random((4, 11))
            ).ravel(),
            "weight": (weights / weights.sum(axis=1, keepdims=True)).ravel(),
        }
    )


TABLE = pd.concat(
    [rows_of(member.model, snapshot) for snapshot in ("warmup", "end") for member in MEMBERS]
)


def test_bars_have_the_share_of_the_nodes_within_them(drawn_from) -> None:
    tables = {"hessian_density": TABLE}
    figure = drawn_from("hessian_density", tables, MEMBERS, {}, ("end", "warmup"))
    shown = [(member, snapshot) for snapshot in ("end", "warmup") for member in MEMBERS]
    moments = {"end": "end of training", "warmup": "end of warm-up"}
    for axes, (member, snapshot) in zip(figure.axes, shown, strict=True):
        rows = TABLE.query(f"model == '{member.model}' and snapshot == '{snapshot}'")
        low, high = rows["node"].min(), rows["node"].max()
        said = f"from {low:.4g} to {high:.4g}".replace("-", "\N{MINUS SIGN}")
        assert axes.get_title() == f"{member.label}, {moments[snapshot]}\n{said}"
        shares, ends, _ = axes.patches[0].get_data()
        assert shares.sum() == pytest.approx(1)
        for share, left, right in zip(shares[:-1], ends[:-2], ends[1:-1], strict=True):
            inside = (rows["node"] >= left) & (rows["node"] < right)
            assert share == pytest.approx(rows["weight"][inside].sum() / 4)
        # Nothing is drawn where there are no nodes, and every node is drawn.
        assert (ends[0], ends[-1]) == (low, high)
        assert axes.get_ylim()[0] < shares[shares > 0].min()


def test_a_high_eigenvalue_makes_no_tail_below_the_lowest() -> None:
    nodes = np.array([-46.0, -0.5, 0.2, 0.3, 2052.0])
    shares, ends, linear = shares_of_bars(nodes, np.full(5, 0.2))
    assert ends[0] == -46
    assert not shares[(ends[1:] < -1)][1:].any()
    assert linear == 1


def test_nodes_that_are_all_alike_have_one_bar() -> None:
    shares, ends, _ = shares_of_bars(np.full(3, -2.0), np.full(3, 1 / 3))
    assert shares.tolist() == pytest.approx([1])
    assert ends.tolist() == [-2, -2]
