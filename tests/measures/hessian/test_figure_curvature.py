"""The figures of the curvature of parts show their table."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, VIT
from vitscope.drawing.legends import moment

MEMBERS = (RESNET, VIT)
BLOCKS = pd.DataFrame(
    {
        "model": np.repeat([member.model for member in MEMBERS], 3),
        "index": [0, 1, 2] * 2,
        "depth": [0, 0.5, 1] * 2,
        "kind": ["stem", "msa", "conv"] * 2,
        "height": 4,
        "width": 4,
    }
)
LAYERS = {0: "stem", 4: "convolution", 7: "head"}


def rows_of(model: str, snapshot: str) -> pd.DataFrame:
    """Four batches of parts: the head is the block behind the last cut point."""
    random = np.random.default_rng([len(model), len(snapshot)])
    parts = [("network", 0, "network")]
    parts += [("block", index, part) for index, part in enumerate(["stem", "a", "b", "head"])]
    parts += [("layer", index, part) for index, part in LAYERS.items()]
    rows = pd.DataFrame(parts * 4, columns=["of", "index", "part"])
    values = random.lognormal(size=(3, len(rows)))
    return rows.assign(
        model=model,
        snapshot=snapshot,
        batch=np.repeat(range(4), len(parts)),
        parameters=10 + rows["index"],
        trace=values[0] - values[1],
        gauss_newton_trace=values[0],
        eigenvalue=np.where(values[1] > 2, -1, 1) * values[2],
    )


TABLE = pd.concat([rows_of(m.model, s) for s in ("end", "warmup") for m in MEMBERS])


def means(model: str, snapshot: str, of: str) -> pd.DataFrame:
    rows = TABLE.query(f"model == '{model}' and snapshot == '{snapshot}' and of == '{of}'")
    drawn = rows.assign(
        magnitude=rows["eigenvalue"].abs(),
        mean=rows["trace"] / rows["parameters"],
        linear=rows["gauss_newton_trace"] / rows["parameters"],
    )
    return drawn.groupby("index")[["magnitude", "mean", "linear"]].mean()


@pytest.mark.parametrize("snapshots", [("end",), ("warmup", "end")])
def test_curves_are_the_means_of_blocks_in_their_bands(drawn_from, snapshots) -> None:
    tables = {"curvature": TABLE, "blocks": BLOCKS}
    figure = drawn_from("curvature", tables, MEMBERS, {}, snapshots)
    shown = [(member, each, row) for each in snapshots for row in (0, 1) for member in MEMBERS]
    for axes, (member, snapshot, row) in zip(figure.axes, shown, strict=True):
        expected = means(member.model, snapshot, "block").loc[:2]
        curves = [line.get_xydata() for line in axes.lines if len(line.get_xdata()) == 3]
        names = ["linear", "mean"] if row else ["magnitude"]
        for curve, name in zip(curves, names, strict=True):
            np.testing.assert_allclose(curve[:, 0], [0, 0.25, 0.75])
            np.testing.assert_allclose(curve[:, 1], expected[name])
        if row == 0:
            several = f"{member.label}, {moment(snapshot)}"
            assert axes.get_title() == (several if len(snapshots) > 1 else member.label)


def test_rows_are_the_means_of_kinds_of_layers(drawn_from) -> None:
    figure = drawn_from("curvature_by_layer", {"curvature": TABLE}, MEMBERS, {}, ("end",))
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["network", *LAYERS.values()]
    for nth, member in enumerate(MEMBERS):
        expected = pd.concat([means(member.model, "end", of) for of in ("network", "layer")])
        at = np.arange(4) + [-0.25, 0.25][nth]
        (curve,) = [line.get_xydata() for line in left.lines[nth : nth + 1]]
        np.testing.assert_allclose(curve, np.c_[expected["magnitude"], at])
        for name, line in zip(("linear", "mean"), right.lines[2 * nth : 2 * nth + 2], strict=True):
            np.testing.assert_allclose(line.get_xydata(), np.c_[expected[name], at])


def test_an_axis_of_means_ends_at_zero_where_none_is_negative(drawn_from) -> None:
    traces = 10.0 ** (2 - 3 * TABLE["index"])
    positive = TABLE.assign(trace=traces, gauss_newton_trace=traces)
    tables = {"curvature": positive, "blocks": BLOCKS}
    figure = drawn_from("curvature", tables, MEMBERS, {}, ("end",))
    for axes in figure.axes[2:]:
        assert -axes.yaxis.get_transform().linthresh < axes.get_ylim()[0] < 0


def test_labels_of_both_signs_have_room(drawn_from) -> None:
    traces = TABLE["part"].map({"stem": -20, "convolution": 200}).fillna(0.1)
    both = TABLE.assign(trace=traces, gauss_newton_trace=traces.abs())
    figure = drawn_from("curvature_by_layer", {"curvature": both}, MEMBERS, {}, ("end",))
    figure.draw_without_rendering()
    right = figure.axes[1]
    ends = [label.get_window_extent().intervalx for label in right.get_xticklabels()]
    shown = np.sort([each for each in ends if each[0] < each[1]], axis=0)
    assert len(shown) > 3
    assert (shown[1:, 0] > shown[:-1, 1]).all()
    assert figure.legends[0].get_texts()[-1].get_text() == "95 % interval"
