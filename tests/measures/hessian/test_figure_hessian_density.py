"""The figure of the spectral density of the Hessian shows its table."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tests.helpers.drawing import RESNET, VIT
from vitscope.measures.hessian.figure import SHARE_OF_RANGE

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


def test_panels_show_the_smoothed_quadratures(drawn_from) -> None:
    tables = {"hessian_density": TABLE}
    figure = drawn_from("hessian_density", tables, MEMBERS, {}, ("end", "warmup"))
    shown = [(member, snapshot) for snapshot in ("end", "warmup") for member in MEMBERS]
    for axes, (member, snapshot) in zip(figure.axes, shown, strict=True):
        assert axes.get_title() == f"{member.label}, {snapshot}"
        rows = TABLE.query(f"model == '{member.model}' and snapshot == '{snapshot}'")
        width = SHARE_OF_RANGE * np.ptp(rows["node"])
        at, density = axes.lines[0].get_data()
        kernels = norm.pdf(at[:, None], rows["node"].to_numpy(), width)
        np.testing.assert_allclose(density, kernels @ rows["weight"] / 4, rtol=1e-10)
        assert np.trapezoid(density, at) == pytest.approx(1, abs=1e-4)
