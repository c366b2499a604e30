import inspect
from functools import cache
from itertools import combinations
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from tests.helpers.claims import published
from tests.helpers.drawing import draw_kind
from tests.helpers.pictures import picture
from tests.helpers.shown import boxes_of, flaws, legend_labels, legends_of, sizes_of, spans
from tests.helpers.shown_sets import table_at_random
from tests.helpers.tiers import some_of
from vitscope.drawing.charts import Chart, PublishedPoints
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import INTERVAL
from vitscope.drawing.looks import INTERVAL_ALPHA
from vitscope.drawing.saving import enlarge_text_for_saving, style
from vitscope.errors import VitscopeError
from vitscope.measures.registry import kinds
from vitscope.package_data import STYLE
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

ROOT = Path(__file__).parents[2]

# Six models of two families that look alike.
MEMBERS = [Member(f"m{i}", f"Model {i}", ["resnet", "timm_resnet"][i % 2], i) for i in range(6)]
PUBLISHED = {
    "feature_variance": ("fig9.csv", "ResNet"),
    "fourier_curves": ("fig2a.csv", "ResNet"),
    "fourier_depth": ("fig8.csv", "ViT"),
    "frequency_noise": ("fig2b.csv", "ResNet"),
    "lesion": ("fig10b_swin.csv", "Swin"),
    "landscape": ("fig1a.csv", "ResNet"),
    "hessian": ("fig4_hessian.csv", "ResNet"),
    "fit": ("fig5.csv", "R"),
    "fit_by_window": ("fig7a.csv", "5x5"),
    "robustness_by_accuracy": ("fig12b.csv", "ResNet"),
    "attention_distance": ("clmim_moco.csv", "MoCo v3 ViT-B/16"),
    "attention_nmi": ("clmim_moco.csv", "MoCo v3 ViT-B/16"),
    "shape_texture": ("cue_conflict.csv", "ResNet-50"),
    "occlusion": ("occlusion.csv", "ResNet-50"),
}
# Tables of maps over pictures, which text does not keep, and which column has the maps.
MAPS = {"attention_rollout": "rollout", "attention_maps": "weights", "class_maps": "values"}
# Kinds that have a panel for the published points of each model.
APART = ["feature_variance", "fourier_depth", "lesion", "attention_distance", "attention_nmi"]
# Kinds that show pictures, which have no axes; those of polar axes are written along them.
PICTURES = {
    *("attention_heads", "attention_query", "attention_rollout", "class_maps", "landscape"),
    *("patch_components", "patch_filters", "receptive_field", "token_outliers", "token_pca"),
    "trajectory",
}
TOGETHER = [
    *("frequency_noise", "landscape_slices", "trajectory", "robustness", "occlusion"),
    *("shuffling", "beside_people"),
]


@cache
def table_of(name: str) -> pd.DataFrame:
    """A table of one model: that of the default study, or one that its tests do not keep."""
    if name == "hessian_density":
        nodes = np.linspace(-10, 300, 8)
        return pd.DataFrame(
            {"snapshot": "end", "batch": 0, "probe": 0, "node": nodes, "weight": 1 / 8}
        )
    if name == "loss_terms":
        conditions = pd.MultiIndex.from_product([(False, True)] * 2, names=["clean", "l2"])
        nodes = pd.DataFrame({"of": "spectrum", "x": np.linspace(-10, 300, 8), "value": 1 / 8})
        steps = pd.DataFrame({"of": "slice", "x": [-0.5, 0, 0.5], "value": [3.0, 1, 3]})
        points = pd.concat([steps, nodes]).assign(batch=0, weight_decay=0.05)
        return conditions.to_frame(index=False).merge(points, how="cross")
    if name == "reliability":
        low = np.linspace(0, 0.9, 10)
        bins = {"low": low, "high": low + 0.1, "confidence": low + 0.05, "accuracy": low}
        return pd.DataFrame({**bins, "images": 10})
    if name == "beside_people":
        return table_at_random("high-pass", "", 1, 0)
    if name == "cka_between":
        # Of a model beside itself, as `rows_of` has it.
        return table_of("cka").assign(other_model="")
    rows = pd.read_csv(ROOT / "tests" / "expected" / f"{name}.csv")
    there = set(rows["model"])
    rows = rows[rows["model"] == ("resnet" if "resnet" in there else rows["model"][0])]
    if name == "curvature":
        # Tests do not keep which eigenvalues converged.
        rows = rows.assign(converged=True)
    if name == "token_norms":
        # Lists are not kept in text.
        tokens = rows["height"] * rows["width"]
        positions = [[each] * count for each, count in zip(rows["outliers"], tokens, strict=True)]
        rows = rows.assign(positions=positions)
    if name == "singular_values":
        rows = rows.assign(log_ratios=[-0.1 * np.arange(count) for count in rows["most"]])
    if name == "patch_filters":
        sizes = rows["height"] * rows["width"] * rows["channels"]
        rows = rows.assign(values=[np.ones(size) for size in sizes])
    if name == "position_bias":
        sizes = rows["height"] * rows["width"]
        rows = rows.assign(values=[np.linspace(-1, 1, size) for size in sizes])
    if name == "position_similarity":
        alike = np.linspace(-1, 1, len(rows))
        rows = rows.assign(products=[alike] * len(rows), cosines=[alike] * len(rows))
    if name == "receptive_field":
        rows = rows.assign(contributions=[np.ones(width**2) for width in rows["image_width"]])
    if name == "token_pca":
        sizes = rows["height"] * rows["width"]
        first = [np.append(np.linspace(-1, 1, size - 1), np.nan) for size in sizes]
        components = [np.linspace(-1, 1, 3 * size) for size in sizes]
        rows = rows.assign(first=first, components=components, picture=picture(0))
        rows = rows.assign(explained=[[0.5, 0.3, 0.2]] * len(rows))
    if name in MAPS:
        sizes = rows["height"] * rows["width"]
        maps = [np.linspace(0.5, 1, count) for count in sizes]
        named = {"class_name": "Greater Swiss Mountain dog", "confidence": 1.0}
        shares = {"on_subject": 1.0, "subject": 1.0, "whole": picture(0)}
        rows = rows.assign(**{MAPS[name]: maps}, picture=picture(0), **named, **shares)
    return rows


def rows_of(name: str, model: str) -> pd.DataFrame:
    """A table of a model; what is of several, of the model beside itself."""
    rows = table_of(name).assign(model=model)
    others = {key: model for key in ("other_model", "third_model") if key in rows}
    return rows.assign(**others)


def tables_of_kind(kind, members):
    """The tables of a kind; for a matrix of models, each two of them beside each other."""
    names = kinds()[kind].tables
    found = {name: pd.concat([rows_of(name, m.model) for m in members]) for name in names}
    if kinds()[kind].all_pairs:
        pairs = [
            rows_of("cka_between", one.model).assign(other_model=other.model)
            for one, other in combinations(members, 2)
        ]
        found["cka_between"] = pd.concat([found["cka_between"], *pairs])
    return found


def draw(kind, count=6, compared=(), width=5.5, font_size=7):
    """A figure of the first members, some of them compared with published points."""
    return drawn_once(kind, count, compared, width, font_size)


@cache
def drawn_once(kind, count, compared, width, font_size):
    """Draw and lay out a figure once for all tests of it: these look at it and change nothing."""
    members = MEMBERS[:count]
    tables = tables_of_kind(kind, members)
    theirs = {}
    if compared:
        file, series = PUBLISHED[kind]
        theirs = published(kind, file, {MEMBERS[i].model: series for i in compared})
    with style(STYLE, {"width": width, "font_size": font_size}):
        figure = draw_kind(kind, tables, members, theirs)
        enlarge_text_for_saving(figure)
        figure.draw_without_rendering()
    return figure


def axes_of(figure):
    return [axes for part in [figure, *figure.subfigs] for axes in part.axes]


def marker_of(line):
    color, face = to_hex(line.get_color()), to_hex(line.get_markerfacecolor())
    return color, line.get_marker(), face, line.get_fillstyle()


def look_of(line):
    return *marker_of(line), str(line._unscaled_dash_pattern)


@pytest.mark.parametrize("kind", kinds())
def test_published_points_go_to_the_kinds_that_declare_their_columns(kind):
    declared = kinds()[kind]
    plot = resolve_name(declared.draw)
    takes = inspect.signature(plot).parameters
    shows = "published" in takes
    if isinstance(plot, Chart):
        shows = any(
            isinstance(layer, PublishedPoints) for rows in plot.rows for layer in rows.layers
        )
    assert bool(declared.drawn_columns) == shows
    assert set(declared.values) <= set(takes)


@pytest.mark.parametrize("kind", kinds())
def test_a_model_that_was_not_measured_is_refused(kind):
    tables = {name: rows_of(name, "m0") for name in kinds()[kind].tables}
    name = next(name for name in tables if name != "cka_between")
    with pytest.raises(VitscopeError, match=f"The {name} table has no model 'other'.*: delete the"):
        draw_kind(kind, tables, [Member("other", "Other", "vit", 0)], {})


# How many models stand on the page, its width, and the points of its text; with every change, the
# narrowest.
PAGES = [(2, 5.5, 7), (3, 3.25, 7), (3, 6.875, 7), (2, 5.5, 9), (2, 5.5, 5)]
PAGES += [(count, 5.5, 7) for count in (1, 3, 4, 6)]


@pytest.mark.parametrize("page", some_of(PAGES, PAGES[1]), ids=str)
@pytest.mark.parametrize("kind", kinds())
def test_a_figure_fits_a_page_and_nothing_of_it_overlaps_or_is_too_small(kind, page):
    count, width, font_size = page
    for compared in [(), tuple(range(count))] if kind in PUBLISHED else [()]:
        figure = draw(kind, count, compared, width, font_size)
        assert figure.get_figwidth() <= width
        assert flaws(figure) == []
        assert len(boxes_of(figure)) >= count
        # In points, with room for rounding: raised numbers have 0.7 of the size of their line.
        assert min(sizes_of(figure)) > 4.999
        assert min(text.get_fontsize() for text in figure.findobj(Text)) > 5.999


# A column of a journal, and its page: inches.
COLUMN, PAGE = 3.5, 9.5
# How many models or pairs of them the figures of the default study show at most.
MOST: dict[str, int] = {}
for each in load_study(BUNDLED_STUDIES / "mini.yaml").figures.values():
    networks = {model.partition("@")[0] for model in each.models}
    MOST[each.kind] = max(MOST.get(each.kind, 0), len(each.groups or networks))


@pytest.mark.parametrize("kind", some_of(MOST, "training", "token_norms", "token_outliers", "cka"))
def test_a_figure_of_a_column_is_no_higher_than_a_page(kind):
    figure = draw(kind, min(MOST[kind], len(MEMBERS)), width=COLUMN)
    assert figure.get_figheight() <= PAGE
    assert flaws(figure) == []


# Kinds that were cut or overlapped in the largest text.
LARGE = ["landscape", "hessian", "feature_variance", "frequency_noise", "robustness", "curvature"]


@pytest.mark.parametrize("kind", some_of(LARGE, "landscape"))
def test_the_largest_text_neither_overlaps_nor_is_cut(kind):
    assert flaws(draw(kind, 2, font_size=12)) == []


@pytest.mark.parametrize("kind", sorted({*kinds()} - PICTURES))
def test_the_axes_of_a_figure_say_what_they_show(kind):
    figure = draw(kind, 2)
    outer = [part.get_supxlabel() for part in figure.subfigs]
    assert any([axes.get_xlabel() for axes in axes_of(figure)] + outer)
    assert any(axes.get_ylabel() or axes.get_yticklabels() for axes in axes_of(figure))


@pytest.mark.parametrize("kind", kinds())
def test_what_panels_side_by_side_show_is_said_once(kind):
    figure = draw(kind, 2)
    panels = [axes for axes in axes_of(figure) if axes.get_label() != "<colorbar>"]
    said = [
        (axes.get_subplotspec().get_gridspec(), axes.get_subplotspec().rowspan.start, label)
        for axes in panels
        if axes.get_subplotspec() is not None and (label := axes.get_ylabel())
    ]
    assert len(said) == len({*said})


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("variance_by_epoch", "Share of blocks by\nchange of high frequencies"),
        ("share_by_epoch", "Share of blocks by\nchange of share within images"),
        ("shape_texture", "Share of images decided by"),
        ("effective_rank", "largest possible of tokens"),
        ("effective_rank", "means of images"),
        (
            "receptive_field",
            "50 % of all contributions; above a map, how much of the image it takes",
        ),
        ("attention_nmi", "Normalized mutual\ninformation"),
        ("attention_low_pass", "High frequencies let\nthrough (output / values)"),
        ("lesion", "Change of accuracy\nwithout the block (points)"),
        ("frequency_noise", "Change of accuracy (points)"),
        ("attention_distance", "Attention distance\n(pixels)"),
        ("class_maps", "Value of a map, over its largest value"),
        ("hessian", "end of warm-up"),
        ("hessian_density", "Model 0, end of training"),
    ],
)
def test_words_beside_a_picture_need_no_caption(kind, word):
    figure = draw(kind, 2)
    assert any(text.startswith(word) for text, _ in boxes_of(figure))


@pytest.mark.parametrize("kind", kinds())
def test_the_legend_says_what_all_panels_show(kind):
    figure = draw(kind, 2, (0, 1) if kind in PUBLISHED else ())
    labels = legend_labels(figure)
    shades = [
        each
        for axes in axes_of(figure)
        for each in axes.collections
        if isinstance(each, PolyCollection) and each.get_alpha() == INTERVAL_ALPHA
    ]
    assert not shades or INTERVAL in labels
    assert not any(map(spans, axes_of(figure))) or {"MSA", "subsampling"} & {*labels}
    if kind in PUBLISHED and kind not in ("landscape", "fourier_curves"):
        assert any("published" in label for label in labels)
    for legend in legends_of(figure):
        named = [text.get_text() for text in legend.get_texts()]
        assert len(named) == len({*named})


@pytest.mark.parametrize("kind", TOGETHER)
def test_six_models_that_look_alike_are_told_apart_in_the_panel_as_in_the_legend(kind):
    figure = draw(kind)
    for legend in legends_of(figure):
        labels = [text.get_text().split(":")[0] for text in legend.get_texts()]
        handles = dict(zip(labels, legend.legend_handles, strict=True))
        looks = [look_of(handles[member.label]) for member in MEMBERS]
        assert len(set(looks)) == len(MEMBERS)
    named = [look_of(handle) for handle in legends_of(figure)[0].legend_handles[:6]]
    lines = axes_of(figure)[0].lines
    shown = [look_of(line) for line in lines if line.get_linestyle() != "None"]
    if kind == "trajectory":
        # Its markers are no part of its lines.
        named, shown = ([(look[0], look[-1]) for look in each] for each in (named, shown))
    assert [look for look in shown if look in named] == named


def test_published_curves_of_six_models_are_told_apart():
    axes = axes_of(draw("frequency_noise", 6, tuple(range(6))))[-1]
    dotted = [look_of(line) for line in axes.lines if line.get_linestyle() == ":"]
    assert len(set(dotted)) == len(dotted) == 6


@pytest.mark.parametrize("compared", [(), (0,), (0, 1)])
@pytest.mark.parametrize("kind", kinds())
def test_no_figure_has_two_y_axes_in_one_frame(kind, compared):
    if compared and kind not in PUBLISHED:
        pytest.skip("shows no published points")
    figure = draw(kind, 2, compared)
    frames = [axes.bbox for axes in dict.fromkeys(axes_of(figure)) if axes.axison]
    for one, other in combinations(frames, 2):
        shared = Bbox.intersection(one, other)
        # Halves of an axis touch.
        assert shared is None or min(shared.width, shared.height) < 1


@pytest.mark.parametrize("compared", some_of([(0,), (1,), (0, 1, 2), (2, 4)], (2, 4)))
@pytest.mark.parametrize("kind", APART)
def test_points_of_another_model_have_panels_that_say_so(kind, compared):
    without, figure = draw(kind, 6), draw(kind, 6, compared)
    theirs = [axes for axes in axes_of(figure) if axes.get_title().startswith("Published: ")]
    assert len(axes_of(figure)) - len(axes_of(without)) == len(theirs) == len(compared)
    assert all(axes.get_title().endswith("(another model)") for axes in theirs)
    assert any("published" in each and "(own panel)" in each for each in legend_labels(figure))
