import numpy as np
import pandas as pd
import pytest

from tests.helpers.drawing import RESNET, SWIN, VIT
from tests.helpers.shown import legend_labels, spans
from tests.measures.conftest import cut_points
from vitscope.claims.points import read_published
from vitscope.measures.registry import kinds

NEEDED = kinds()["lesion"].published


@pytest.fixture
def blocks(table):
    return pd.concat([table, cut_points("swin")]).sample(frac=1, random_state=1)


@pytest.fixture
def lesions(blocks):
    """Units of every model, in no particular order, with intervals that are not symmetric."""
    units = blocks[~blocks["kind"].isin(["stem", "pool"])].copy()
    units["change"] = -np.random.default_rng(0).gamma(1, 4, len(units))
    return units.assign(ci_low=units["change"] - 1.5, ci_high=units["change"] + 0.5)


@pytest.fixture
def drawn(lesions, blocks, drawn_from):
    def draw_it(members=(RESNET, VIT, SWIN), published=None, lesions=lesions, blocks=blocks):
        tables = {"lesion": lesions, "blocks": blocks}
        return drawn_from("lesion", tables, members, published)

    return draw_it


@pytest.fixture
def swin_file(points_file):
    return points_file.with_name("fig10b_swin.csv")


def points(axes):
    """Return what is drawn as markers: the zero line and the intervals are none."""
    return [line for line in axes.lines if line.get_linestyle() == "None"]


def test_panels_show_the_table_in_the_middle_of_the_bands(drawn, lesions):
    figure = drawn()
    for axes, model, last in zip(figure.axes, ["resnet", "vit", "swin"], [16, 24, 27], strict=True):
        rows = lesions[lesions["model"] == model].sort_values("index")
        (line,) = points(axes)
        np.testing.assert_allclose(line.get_xdata(), (rows["index"] - 0.5) / last, rtol=1e-12)
        np.testing.assert_array_equal(line.get_ydata(), rows["change"])
        intervals = np.array([path.vertices for path in axes.collections[0].get_paths()])
        np.testing.assert_array_equal(intervals[:, :, 1], rows[["ci_low", "ci_high"]])
        low, high = axes.get_ylim()
        assert low < rows["ci_low"].min()
        assert high > max(0, rows["ci_high"].max())


def test_bands_lie_where_the_paper_has_them(drawn, points_file):
    theirs = pd.read_csv(points_file.with_name("fig9_bands.csv")).query("figure == 'fig10b'")
    # The paper counts the 27 units from 0 to 26, and a band reaches half a unit to either side.
    ends = (theirs[["start_index", "end_index"]].to_numpy() + 0.5) / 27
    assert spans(drawn([SWIN]).axes[0]) == sorted(map(tuple, ends.round(9).tolist()))


def test_a_published_unit_lies_where_the_measured_one_does(drawn, swin_file, lesions):
    figure = drawn([SWIN], read_published(swin_file, NEEDED, {"swin": "Swin"}, same_models=True))
    theirs, off, ours = points(figure.axes[0])
    published = pd.read_csv(swin_file)
    units = lesions[lesions["model"] == "swin"].sort_values("index")["index"]
    measured = dict(zip(units, ours.get_xdata(), strict=True))
    for line, source in ((theirs, "marker"), (off, "extrapolated_offscale")):
        rows = published[published["source"] == source]
        np.testing.assert_array_equal(line.get_ydata(), rows["change"])
        expected = [measured[index + 1] for index in rows["index"]]
        np.testing.assert_allclose(line.get_xdata(), expected, rtol=1e-12)
    assert off.get_marker() != theirs.get_marker() == ours.get_marker()
    assert "extrapolated" in legend_labels(figure)


def test_a_published_file_need_not_say_where_points_come_from(drawn, swin_file, tmp_path):
    pd.read_csv(swin_file).drop(columns="source").to_csv(tmp_path / "file.csv", index=False)
    published = read_published(tmp_path / "file.csv", NEEDED, {"swin": "Swin"}, same_models=True)
    figure = drawn([SWIN], published)
    assert [len(line.get_ydata()) for line in points(figure.axes[0])] == [23, 24]
    assert "extrapolated" not in legend_labels(figure)
