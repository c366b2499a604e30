import numpy as np
import pandas as pd
import pytest

from tests.helpers.shown import legend_labels, spans
from vitscope.claims.published import read_published
from vitscope.drawing.figure import Member
from vitscope.measures.registry import kinds

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
SWIN = Member("swin", "Swin-Ti", "swin")
NEEDED = kinds()["lesion"].published
# Blocks of each stage of Swin-Ti: each an MSA and an MLP.
DEPTHS = [2, 2, 6, 2]


def swin() -> pd.DataFrame:
    """The cut points of a Swin, whose stages begin with a pool."""
    kinds = ["stem"]
    sizes = [32]
    for stage, depth in enumerate(DEPTHS):
        kinds += ["pool"] * (stage > 0) + ["msa", "mlp"] * depth
        sizes += [32 // 2**stage] * (2 * depth + (stage > 0))
    index = np.arange(len(kinds))
    columns = {"index": index, "kind": kinds, "depth": index / index[-1], "height": sizes}
    return pd.DataFrame({"model": "swin", **columns, "width": sizes})


@pytest.fixture
def blocks(table):
    return pd.concat([table, swin()]).sample(frac=1, random_state=1)


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


def test_panels_show_the_table_in_the_middle_of_the_bands(drawn, lesions, blocks):
    figure = drawn()
    assert [axes.get_title() for axes in figure.axes] == ["ResNet-50", "ViT-Ti", "Swin-Ti"]
    for axes, model, last in zip(figure.axes, ["resnet", "vit", "swin"], [16, 24, 27], strict=True):
        rows = lesions[lesions["model"] == model].sort_values("index")
        (line,) = points(axes)
        np.testing.assert_allclose(line.get_xdata(), (rows["index"] - 0.5) / last, rtol=1e-12)
        np.testing.assert_array_equal(line.get_ydata(), rows["change"])
        intervals = np.array([path.vertices for path in axes.collections[0].get_paths()])
        np.testing.assert_array_equal(intervals[:, :, 0], np.c_[line.get_xdata()].repeat(2, 1))
        np.testing.assert_array_equal(intervals[:, :, 1], rows[["ci_low", "ci_high"]])
        assert axes.get_xlim() == (0, 1)
        low, high = axes.get_ylim()
        assert low < rows["ci_low"].min()
        assert high > max(0, rows["ci_high"].max())


def test_a_unit_lies_in_a_band_of_its_kind(drawn, lesions):
    axes = drawn([SWIN]).axes[0]
    (line,) = points(axes)
    kinds = lesions[lesions["model"] == "swin"].sort_values("index")["kind"]
    for depth, kind in zip(line.get_xdata(), kinds, strict=True):
        assert any(start < depth < end for start, end in spans(axes)) == (kind == "msa")


def test_bands_lie_where_the_paper_has_them(drawn, points_file):
    theirs = pd.read_csv(points_file.with_name("fig9_bands.csv")).query("figure == 'fig10b'")
    # The paper counts the 27 units from 0 to 26, and a band reaches half a unit to either side.
    ends = (theirs[["start_index", "end_index"]].to_numpy() + 0.5) / 27
    assert spans(drawn([SWIN]).axes[0]) == sorted(map(tuple, ends.round(9).tolist()))


def test_a_published_unit_lies_where_the_measured_one_does(drawn, swin_file, lesions):
    figure = drawn([SWIN], read_published(swin_file, NEEDED, {"swin": "Swin"}, same_models=True))
    (axes,) = figure.axes
    theirs, off, ours = points(axes)
    published = pd.read_csv(swin_file)
    regular = published[published["source"] == "marker"]
    cut = published[published["source"] == "extrapolated_offscale"]
    measured = dict(
        zip(
            lesions[lesions["model"] == "swin"].sort_values("index")["index"],
            ours.get_xdata(),
            strict=True,
        )
    )
    for line, rows in ((theirs, regular), (off, cut)):
        np.testing.assert_array_equal(line.get_ydata(), rows["change"])
        expected = [measured[index + 1] for index in rows["index"]]
        np.testing.assert_allclose(line.get_xdata(), expected, rtol=1e-12)
        assert line.get_markerfacecolor() == "white"
        assert line.get_zorder() < ours.get_zorder()
    assert len(cut) == 1
    assert off.get_marker() != theirs.get_marker() == ours.get_marker()
    labels = ["measured", "published", "extrapolated", "95 % interval", "MSA", "subsampling"]
    assert legend_labels(figure) == labels


def test_points_of_another_model_have_their_own_axis_with_the_same_zero(drawn, swin_file):
    published = read_published(swin_file, NEEDED, {"swin": "Swin"})
    figure = drawn([RESNET, SWIN], published)
    left, right = figure.axes[1:]
    assert [len(points(axes)) for axes in (left, right)] == [1, 2]
    assert left.get_zorder() > right.get_zorder()
    assert right.get_ylabel() == "Published Δ accuracy (pp)"
    assert "published, another model (right axis)" in legend_labels(figure)
    zeros = [axes.transData.transform((0, 0))[1] for axes in (left, right)]
    assert zeros[0] == pytest.approx(zeros[1], abs=0.01)
    (line,) = [line for line in right.lines if line not in points(right)]
    assert list(line.get_ydata()) == [0, 0]


def test_a_published_file_need_not_say_where_points_come_from(drawn, swin_file, tmp_path):
    pd.read_csv(swin_file).drop(columns="source").to_csv(tmp_path / "file.csv", index=False)
    published = read_published(tmp_path / "file.csv", NEEDED, {"swin": "Swin"}, same_models=True)
    figure = drawn([SWIN], published)
    assert [len(line.get_ydata()) for line in points(figure.axes[0])] == [23, 0, 24]
    assert "extrapolated" not in legend_labels(figure)


def test_changes_of_zero_and_above_are_shown(drawn, lesions):
    for change in (0.0, 3.0):
        flat = lesions.assign(change=change, ci_low=change, ci_high=change)
        low, high = drawn([VIT], lesions=flat).axes[0].get_ylim()
        assert low < 0 <= change < high
