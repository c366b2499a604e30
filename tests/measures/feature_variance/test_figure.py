import numpy as np
import pandas as pd
import pytest

from tests.helpers.shown import boxes_of, flaws, legend_labels, spans
from tests.helpers.tiers import some_of
from vitscope.claims.published import read_published
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import look_of
from vitscope.errors import VitscopeError
from vitscope.measures.registry import kinds

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
NEEDED = kinds()["feature_variance"].published
SERIES = {"resnet": "ResNet", "vit": "ViT"}


@pytest.fixture
def drawn(table, laid_out):
    def draw_it(members=(RESNET, VIT), published=None, table=table):
        tables = {"feature_variance": table}
        return laid_out("feature_variance", tables, members, published)

    return draw_it


def test_panels_show_the_table_in_order(drawn, table):
    figure = drawn()
    assert [axes.get_title() for axes in figure.axes] == ["ResNet-50", "ViT-Ti"]
    for axes, model in zip(figure.axes, ["resnet", "vit"], strict=True):
        rows = table[table["model"] == model].sort_values("index")
        (line,) = axes.lines
        np.testing.assert_array_equal(line.get_xdata(), rows["depth"])
        np.testing.assert_array_equal(line.get_ydata(), rows["variance"])
        assert axes.get_xlim() == (0, 1)
        assert axes.get_ylim()[0] == 0
        low, high = axes.collections[0].get_datalim(axes.transData).intervaly
        assert (low, high) == (rows["ci_low"].min(), rows["ci_high"].max())


def test_bands_lie_where_the_paper_has_them(drawn, points_file):
    figure = drawn()
    bands = pd.read_csv(points_file.with_name("fig9_bands.csv")).query("figure == 'fig9'")
    for axes, series in zip(figure.axes, ["ResNet", "ViT"], strict=True):
        theirs = bands[bands["model"] == series]
        expected = theirs[["start_depth", "end_depth"]].sort_values("start_depth")
        # The poster draws its bands a little narrower than a block of ResNet.
        np.testing.assert_allclose(spans(axes), expected, atol=4e-3)


def test_families_look_as_in_the_paper(drawn):
    blue, red = (axes.lines[0] for axes in drawn().axes)
    assert (blue.get_color(), blue.get_marker()) == ("#1f77b4", "D")
    assert (red.get_color(), red.get_marker()) == ("#d62728", "o")


def test_no_two_families_share_a_look():
    names = ["resnet", "vit", "pit", "swin", "alternet", "mixer", "convnext"]
    looks = [look_of(name) for name in names]
    assert len({look.marker for look in looks}) == len(names)
    assert len({look.color for look in looks}) == len(names)
    assert look_of("a_new_family") == look_of("a_new_family")
    assert look_of("a_new_family") not in looks


def test_points_of_the_same_model_share_its_axis(drawn, points_file):
    figure = drawn(published=read_published(points_file, NEEDED, SERIES, same_models=True))
    assert len(figure.axes) == 2
    published = pd.read_csv(points_file).set_index("model")["variance"]
    for axes, series in zip(figure.axes, ["ResNet", "ViT"], strict=True):
        theirs, ours = axes.lines
        np.testing.assert_array_equal(theirs.get_ydata(), published[series])
        assert theirs.get_markerfacecolor() == "white"
        assert theirs.get_zorder() < ours.get_zorder()
    assert legend_labels(figure)[:2] == ["measured", "published"]


def test_points_of_another_model_have_their_own_axis(drawn, points_file):
    figure = drawn(published=read_published(points_file, NEEDED, SERIES))
    left, right = figure.axes[:2], figure.axes[2:]
    assert [len(axes.lines) for axes in figure.axes] == [1, 1, 1, 1]
    assert all(a.get_zorder() > b.get_zorder() for a, b in zip(left, right, strict=True))
    assert [axes.get_ylabel() for axes in right] == ["Published variance"] * 2
    # Beside the label of an axis on the right, the next panel says what its own shows.
    assert [axes.get_ylabel() for axes in left] == ["Feature map variance"] * 2
    assert "published, another model (right axis)" in legend_labels(figure)


def test_the_legend_names_only_what_is_shown(drawn, table):
    assert legend_labels(drawn()) == ["95 % interval", "MSA", "subsampling"]
    assert legend_labels(drawn([RESNET])) == ["95 % interval", "subsampling"]
    assert legend_labels(drawn([VIT])) == ["95 % interval", "MSA"]
    without = table.assign(ci_low=np.nan, ci_high=np.nan)
    assert legend_labels(drawn([VIT], table=without)) == ["MSA"]


@pytest.mark.parametrize("same_models", [True, False])
@pytest.mark.parametrize("count", some_of(range(1, 7), 2, 6))
def test_nothing_overlaps_and_nothing_is_cut_off(drawn, table, points_file, count, same_models):
    copies = [table.assign(model=table["model"] + str(i)) for i in range(3)]
    for scale, copy in zip([1, 1e3, 1e-3], copies, strict=True):
        copy[["variance", "ci_low", "ci_high"]] *= scale
    members = [
        Member(f"{kind}{i}", f"{kind} number {i}", kind) for i in range(3) for kind in SERIES
    ][:count]
    series = {member.model: SERIES[member.family] for member in members}
    published = read_published(points_file, NEEDED, series, same_models)
    figure = drawn(members, published, pd.concat(copies))

    assert len(boxes_of(figure)) > 10 * count
    assert flaws(figure) == []


def test_a_model_that_was_not_measured_is_refused(drawn):
    with pytest.raises(VitscopeError, match="no model 'swin'"):
        drawn([Member("swin", "Swin", "swin")])
