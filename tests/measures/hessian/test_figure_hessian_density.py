"""The figure of the spectral density of the Hessian shows its table."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tests.helpers.shown import flaws
from vitscope.drawing.figure import Member
from vitscope.measures.hessian.figure_hessian_density import KERNEL, smoothed

MEMBERS = (Member("resnet", "ResNet", "resnet"), Member("vit", "ViT", "vit"))


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


@pytest.fixture
def drawn(laid_out):
    def draw_it(members=MEMBERS, snapshots=("warmup", "end"), table=TABLE):
        tables = {"hessian_density": table}
        return laid_out("hessian_density", tables, members, {}, snapshots)

    return draw_it


def test_panels_show_the_smoothed_quadratures(drawn) -> None:
    figure = drawn(snapshots=("end", "warmup"))
    titles = ["ResNet, end", "ViT, end", "ResNet, warmup", "ViT, warmup"]
    assert [axes.get_title() for axes in figure.axes] == titles
    for axes in figure.axes:
        label, snapshot = axes.get_title().split(", ")
        rows = TABLE.query(f"model == '{label.lower()}' and snapshot == '{snapshot}'")
        width = KERNEL * np.ptp(rows["node"])
        at, density = axes.lines[0].get_data()
        kernels = norm.pdf(at[:, None], rows["node"].to_numpy(), width)
        np.testing.assert_allclose(density, kernels @ rows["weight"] / 4, rtol=1e-10)
        assert np.trapezoid(density, at) == pytest.approx(1, abs=1e-4)
        assert axes.get_yscale() == "log"
        assert axes.get_xlim() == (at[0], at[-1])
        assert axes.get_ylim()[1] > density.max()


def test_a_kernel_stands_on_its_node() -> None:
    at = np.array([1.0, 2.0, 3.0])
    expected = 0.25 * norm.pdf(at, 2.0, 0.5) + 0.75 * norm.pdf(at, 3.0, 0.5)
    np.testing.assert_allclose(
        smoothed(np.array([2.0, 3.0]), np.array([0.25, 0.75]), 0.5, at), expected
    )


def drawn_of(count, drawn):
    """A figure of as many models, which are alike."""
    members = [Member(f"m{i}", f"Model {i}", "vit") for i in range(count)]
    own = TABLE[TABLE["model"] == "vit"]
    return drawn(members, table=pd.concat([own.assign(model=m.model) for m in members]))


@pytest.mark.nightly
def test_many_models_take_several_rows_each_with_all_snapshots(drawn) -> None:
    figure = drawn_of(6, drawn)
    assert flaws(figure) == []
    assert figure.get_figwidth() <= 7
    places = {axes.get_title(): axes.get_position() for axes in figure.axes}
    rows = [
        [f"Model {i}, {snapshot}" for i in three]
        for three in ((0, 1, 2), (3, 4, 5))
        for snapshot in ("warmup", "end")
    ]
    heights = [[round(places[title].y0, 6) for title in row] for row in rows]
    assert all(len(set(row)) == 1 for row in heights)
    assert sorted(heights, reverse=True) == heights
    for row in rows:
        assert sorted(row, key=lambda title: places[title].x0) == row
