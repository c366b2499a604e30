import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import published
from tests.helpers.drawing import RESNET, SWIN, VIT, drawn_from
from tests.helpers.shown import legend_labels, spans
from tests.measures.conftest import cut_points
from vitscope.package_data import PUBLISHED_POINTS

SWIN_FILE = PUBLISHED_POINTS / "fig10b_swin.csv"


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
def drawn(lesions, blocks):
    def draw_it(members=(RESNET, VIT, SWIN), published=None, lesions=lesions, blocks=blocks):
        tables = {"lesion": lesions, "blocks": blocks}
        return drawn_from("lesion", tables, members, published)

    return draw_it


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


def test_bands_lie_where_the_paper_has_them(drawn):
    theirs = pd.read_csv(PUBLISHED_POINTS / "fig9_bands.csv").query("figure == 'fig10b'")
    # The paper counts the 27 units from 0 to 26, and a band reaches half a unit to either side.
    ends = (theirs[["start_index", "end_index"]].to_numpy() + 0.5) / 27
    assert spans(drawn([SWIN]).axes[0]) == sorted(map(tuple, ends.round(9).tolist()))


def test_a_published_unit_lies_where_the_measured_one_does(drawn, lesions):
    figure = drawn([SWIN], published("lesion", SWIN_FILE, {"swin": "Swin"}, same_models=True))
    theirs, off, ours = points(figure.axes[0])
    file = pd.read_csv(SWIN_FILE)
    units = lesions[lesions["model"] == "swin"].sort_values("index")["index"]
    measured = dict(zip(units, ours.get_xdata(), strict=True))
    for line, source in ((theirs, "marker"), (off, "extrapolated_offscale")):
        rows = file[file["source"] == source]
        np.testing.assert_array_equal(line.get_ydata(), rows["change"])
        expected = [measured[index + 1] for index in rows["index"]]
        np.testing.assert_allclose(line.get_xdata(), expected, rtol=1e-12)
    assert off.get_marker() != theirs.get_marker() == ours.get_marker()
    assert "extrapolated" in legend_labels(figure)


def test_a_published_file_need_not_say_where_points_come_from(drawn, tmp_path):
    path = tmp_path / "file.csv"
    pd.read_csv(SWIN_FILE).drop(columns="source").to_csv(path, index=False)
    figure = drawn([SWIN], published("lesion", path, {"swin": "Swin"}, same_models=True))
    assert [len(line.get_ydata()) for line in points(figure.axes[0])] == [23, 24]
    assert "extrapolated" not in legend_labels(figure)


def _curves(axes):
    """Return the lines of more than two points: the positions, then the class token."""
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


def test_panels_show_the_table_on_one_scale(table):
    joined = table[table["kind"] != "stem"]
    of_positions = joined.assign(tokens="positions", ratio=1 + 3 * joined["depth"])
    vit = of_positions[of_positions["model"] == "vit"]
    of_class = vit.assign(tokens="class_token", ratio=5 - 4 * vit["depth"])
    both = pd.concat([of_positions, of_class])
    ratios = both.assign(ci_low=0.9 * both["ratio"], ci_high=1.1 * both["ratio"])
    figure = drawn_from("skip_ratio", {"skip_ratio": ratios, "blocks": table}, (VIT, RESNET))
    curves = [_curves(axes) for axes in figure.axes]
    assert [len(each) for each in curves] == [2, 1]
    for axes, model in zip(figure.axes, ["vit", "resnet"], strict=True):
        rows = ratios[(ratios["model"] == model) & (ratios["tokens"] == "positions")]
        rows = rows.sort_values("index")
        drawn = _curves(axes)[0]
        np.testing.assert_array_equal(drawn.get_xydata(), rows[["depth", "ratio"]])
        assert axes.get_yscale() == "log"
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    assert {"positions", "class token"} <= {*legend_labels(figure)}
