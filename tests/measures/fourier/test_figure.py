from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from scipy.stats import binomtest

from tests.helpers.claims import published
from tests.helpers.drawing import RESNET, SWIN, VIT, drawn_from
from tests.helpers.shown import legend_labels, spans
from vitscope.drawing.looks import depth_color
from vitscope.measures.fourier.spectra import BANDS

CURVES, DEPTH, BOTH = "fourier_curves", "fourier_depth", "fourier"
VALUE = "delta_log_amplitude"


def curves_of(points: pd.DataFrame) -> pd.DataFrame:
    """A fourier table of one model, from its cut points, with intervals that are not symmetric."""
    rng = np.random.default_rng(len(points))
    parts = []
    for row in points.drop(columns=["variance", "ci_low", "ci_high"]).to_dict("records"):
        steps = row["height"] - row["height"] // 2
        fall = np.r_[0, np.cumsum(-rng.gamma(2, 0.5, steps - 1))]
        frequency = np.arange(steps) / max(1, steps - 1)
        part = {"frequency": frequency, "log_amplitude": 3 + fall, VALUE: fall}
        parts.append(pd.DataFrame(row | part | {"ci_low": 1.1 * fall, "ci_high": 0.95 * fall}))
    diagonal = pd.concat(parts).assign(measure="diagonal")
    radial = diagonal.assign(measure="radial", **{VALUE: 5.0, "ci_low": 4.0, "ci_high": 6.0})
    return pd.concat([diagonal, radial])


@pytest.fixture
def fourier(table):
    """Tables of a ResNet, a ViT, and a Swin whose last maps are of 2 x 2, in no order."""
    vit = table[table["model"] == "vit"].sort_values("index")
    sizes = np.repeat([16, 8, 4, 2], [7, 6, 6, 6])
    swin = vit.assign(model="swin", height=sizes, width=sizes)
    models = [table[table["model"] == "resnet"], vit, swin]
    return pd.concat(map(curves_of, models)).sample(frac=1, random_state=0)


@pytest.fixture
def drawn(fourier):
    def draw_it(kind, members=(RESNET, VIT), published=None, table=fourier):
        return drawn_from(kind, {"fourier": table}, members, published)

    return draw_it


def rows_of(table: pd.DataFrame, model: str) -> pd.DataFrame:
    rows = table[(table["model"] == model) & (table["measure"] == "diagonal")]
    return rows.sort_values(["index", "frequency"])


def ends(table: pd.DataFrame, model: str) -> pd.DataFrame:
    return rows_of(table, model).query("frequency == 1")


def panels(figure):
    return [axes for axes in figure.axes if axes.get_ylabel() != "Normalized depth"]


def check_curves(axes, rows, depth):
    """Check that each cut point with several frequencies has a curve in the colour of its depth."""
    curves = [curve for _, curve in rows.groupby("index") if len(curve) > 1]
    for line, curve in zip(axes.lines, curves, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), curve[["frequency", VALUE]])
        assert to_hex(line.get_color()) == depth_color(depth[curve["index"].iloc[0]])


def test_the_curves_of_all_cut_points_in_the_colours_of_their_depth(drawn, fourier):
    for axes, model in zip(panels(drawn(CURVES)), ["resnet", "vit"], strict=True):
        rows = rows_of(fourier, model)
        depths = rows.drop_duplicates("index").set_index("index")["depth"].to_dict()
        check_curves(axes, rows, depths)
        # Curves fill their panel: on a shared scale, those of one model would lie in a corner.
        low, high = axes.get_ylim()
        assert low < rows[VALUE].min() < low + 0.1 * (high - low)
        assert high > 0


def test_colours_of_depth_can_be_told_apart_on_white():
    colors = np.array([to_rgb(depth_color(depth)) for depth in np.linspace(0, 1, 11)])
    linear = np.where(colors > 0.04, ((colors + 0.055) / 1.055) ** 2.4, colors / 12.92)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    assert all(a < b for a, b in pairwise(luminance))
    # A contrast with white of 2 or more.
    assert 1.05 / (luminance[-1] + 0.05) > 2


def test_published_curves_have_panels_of_their_own(drawn, fourier):
    series = {"resnet": "ResNet", "vit": "ViT"}
    theirs = published(CURVES, "fig2a.csv", series, same_models=True)
    shown = panels(drawn(CURVES, published=theirs))
    titles = ["ResNet-50", "ViT-Ti", "Published: ResNet", "Published: ViT"]
    assert [axes.get_title() for axes in shown] == titles
    limits = [axes.get_ylim() for axes in shown]
    assert limits[:2] == limits[2:]
    assert limits[0] != limits[1]
    for axes, model, last in zip(shown[2:], series, [16, 24], strict=True):
        check_curves(axes, theirs[model].points, {i: i / last for i in range(last + 1)})


def test_published_curves_of_another_model_say_so(drawn):
    theirs = published(CURVES, "fig2a.csv", {"vit": "ViT"})
    shown = panels(drawn(CURVES, published=theirs))
    assert shown[2].get_title() == "Published: ViT\n(another model)"
    # The panel stands below the panel of the measured model.
    assert shown[2].get_position().x0 == pytest.approx(shown[1].get_position().x0)


@pytest.mark.parametrize("kind", [DEPTH, BOTH])
def test_the_component_by_depth(drawn, fourier, kind):
    models = ["resnet", "vit", "swin"]
    for axes, model in zip(panels(drawn(kind, (RESNET, VIT, SWIN)))[-3:], models, strict=True):
        expected = ends(fourier, model)
        # Maps of 2 x 2 are left out.
        assert len(expected) == {"resnet": 17, "vit": 25, "swin": 19}[model]
        curve = axes.lines[0].get_xydata()
        points = curve[~np.isnan(curve[:, 1])]
        np.testing.assert_array_equal(points, expected[["depth", VALUE]])
        (interval,) = axes.collections
        low, high = interval.get_datalim(axes.transData).intervaly
        assert (low, high) == (expected["ci_low"].min(), expected["ci_high"].max())
        # The bands go on to the last cut point.
        assert model != "swin" or spans(axes)[-1][0] > expected["depth"].max()


def test_five_models_stand_side_by_side_on_one_scale(drawn):
    members = [RESNET, VIT, SWIN, replace(RESNET, label="Other"), replace(VIT, label="More")]
    upper, lower = np.split(np.array(panels(drawn(BOTH, members))), 2)
    for row in (upper, lower):
        assert len({axes.get_position().y0 for axes in row}) == 1
        assert len({axes.get_ylim() for axes in row}) == 1


@pytest.mark.parametrize("same_models", [True, False])
def test_published_points_of_another_model_have_their_own_panel(drawn, same_models):
    theirs = published(DEPTH, "fig8.csv", {"vit": "ViT"}, same_models)
    axes = drawn(DEPTH, [VIT, RESNET], theirs).axes
    assert [len(each.lines) for each in axes] == ([2, 1] if same_models else [1, 1, 1])
    shown = axes[0 if same_models else 2].lines[0]
    np.testing.assert_array_equal(shown.get_ydata(), theirs["vit"].points[VALUE])


UNDEFINED, NONE = "undefined for these maps", "no values"


@pytest.mark.parametrize(
    ("kind", "notes"), [(CURVES, [UNDEFINED]), (DEPTH, [NONE]), (BOTH, [UNDEFINED, NONE])]
)
def test_a_panel_says_that_its_model_has_no_diagonal(drawn, fourier, kind, notes):
    first = fourier[fourier["frequency"] == 0]
    none = first.assign(**dict.fromkeys([VALUE, "ci_low", "ci_high"], np.nan))
    others = fourier[fourier["model"] != "swin"]
    figure = drawn(kind, [RESNET, SWIN], table=pd.concat([others, none]))
    empty = [axes for axes in panels(figure) if not axes.lines]
    said = [[text.get_text() for text in axes.texts] for axes in empty]
    assert [text for each in said for text in each if text != "own scale"] == notes


def test_panels_show_the_shares_of_the_table(table):
    # A spectrum table of both models, in no order; maps of 4 x 4 have no low frequencies.
    points = table.drop(columns=["variance", "ci_low", "ci_high"])
    shares = np.random.default_rng(0).dirichlet([2, 3, 4], len(points))
    shares[points["height"] == 4, 0] = np.nan
    parts, ends = [], [0, 0.25, 0.5, 2**0.5]
    for band, share, above, up_to in zip(BANDS, shares.T, ends, ends[1:], strict=False):
        values = {"variance": share, "share": share, "ci_low": share * 0.9, "ci_high": share * 1.05}
        limits = {"band": band, "above": above, "up_to": up_to}
        parts.append(points.assign(components=10, **limits, **values))
    spectrum = pd.concat(parts).sample(frac=1, random_state=0)
    figure = drawn_from("spectrum", {"spectrum": spectrum}, (RESNET, VIT))
    for axes, model in zip(figure.axes, ["resnet", "vit"], strict=True):
        rows = spectrum[spectrum["model"] == model].sort_values("index")
        for line, interval, band in zip(axes.lines, axes.collections, BANDS, strict=True):
            points = rows[rows["band"] == band]
            np.testing.assert_array_equal(line.get_xydata(), points[["depth", "share"]])
            low, high = interval.get_datalim(axes.transData).intervaly
            assert (low, high) == (points["ci_low"].min(), points["ci_high"].max())
    labels = ["low: up to 0.25π", "middle: 0.25π to 0.5π", "high: above 0.5π"]
    assert legend_labels(figure)[:3] == labels


def test_models_that_average_are_beside_each_other(fourier, table):
    models, rows = ["resnet", "vit"], {"accuracy": [0.0, 0.2, 0.9, None], "images": [4, 30, 70, 0]}
    variance = table.assign(variance=table["depth"] + 1, ci_low=0.5, ci_high=2.5)
    reliability = pd.concat(
        pd.DataFrame({"model": model, "confidence": [0.1, 0.3, 0.8, None], **rows})
        for model in models
    )
    tables = {"fourier": fourier, "feature_variance": variance, "reliability": reliability}
    figure = drawn_from("averaging", tables, (RESNET, VIT))
    for axes in figure.axes:
        assert len(axes.lines) >= len(models)
    for number, model in enumerate(models):
        points = variance[variance["model"] == model].sort_values("depth")
        lines = [axes.lines[number].get_xydata() for axes in figure.axes]
        np.testing.assert_array_equal(lines[0], points[["depth", "variance"]])
        shown = lines[1][~np.isnan(lines[1][:, 1])]
        np.testing.assert_array_equal(shown, ends(fourier, model)[["depth", VALUE]])
        # A bin of four images is not drawn.
        np.testing.assert_array_equal(lines[2], [[0.3, 0.2], [0.8, 0.9]])
        shade = figure.axes[2].collections[number].get_paths()[0].vertices
        found = {round(up, 9) for _, up in shade}
        wilson = [binomtest(*each).proportion_ci(method="wilson") for each in ((6, 30), (63, 70))]
        assert found == {round(end, 9) for each in wilson for end in (each.low, each.high)}
    assert {RESNET.label, VIT.label, "calibrated"} <= {*legend_labels(figure)}
