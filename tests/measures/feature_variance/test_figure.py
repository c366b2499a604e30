import numpy as np
import pandas as pd
import pytest

from tests.helpers.shown import legend_labels, spans
from vitscope.claims.published import read_published
from vitscope.drawing.figure import Member
from vitscope.measures.registry import kinds

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
NEEDED = kinds()["feature_variance"].published
SERIES = {"resnet": "ResNet", "vit": "ViT"}


@pytest.fixture
def drawn(table, drawn_from):
    def draw_it(members=(RESNET, VIT), published=None, table=table):
        tables = {"feature_variance": table}
        return drawn_from("feature_variance", tables, members, published)

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
