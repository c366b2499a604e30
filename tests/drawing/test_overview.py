from itertools import combinations, cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from tests.helpers.drawing import styled
from tests.helpers.shown import is_whole, legends_of
from vitscope.buildup.figure import sketch_buildup
from vitscope.claims.counting import once_per_recipe
from vitscope.drawing.legends import INTERVAL, Legend
from vitscope.drawing.looks import LABELS_OF_KINDS, VERDICT_LOOKS, Look
from vitscope.drawing.overview import plot_overview
from vitscope.drawing.panels import Panel
from vitscope.drawing.saving import style
from vitscope.jobs.figures import (
    DRAW_OVERVIEW,
    _read_sketch_for_overview_job,
    figures_for_overview_job,
)
from vitscope.measures import sketches
from vitscope.package_data import PUBLISHED_POINTS, STYLE
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

EXPECTED = Path(__file__).parents[1] / "expected"
MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
LABELS = {name: model.label for name, model in MINI.models.items()}
FILES = [str(file) for file in sorted(Path(PUBLISHED_POINTS).glob("*.csv"))]


def shown():
    values = DRAW_OVERVIEW.values(MINI, {})
    inputs = {"published": FILES}
    return [
        _read_sketch_for_overview_job(name, each, inputs)
        for name, each in values["figures"].items()
    ]


@pytest.fixture(scope="module")
def published():
    with style(STYLE):
        return plot_overview(shown(), None, {})


def axes_of(figure, name):
    """Return the panels of the published points of a figure, of one model below the other."""
    (first,) = [each for each in figure.axes if each.get_title().split("\n")[0] == name]
    grid = first.get_subplotspec().get_gridspec()
    if grid is figure.axes[0].get_subplotspec().get_gridspec():
        return [first]
    placed = [each for each in figure.axes if each.get_subplotspec() is not None]
    return [each for each in placed if each.get_subplotspec().get_gridspec() is grid]


def drawn(panels, x, y):
    """Tell whether a line of some panels has these points."""
    points = np.column_stack([x, y])
    lines = [line.get_xydata() for axes in panels for line in axes.lines]
    return any(line.shape == points.shape and np.allclose(line, points) for line in lines)


def read(file, model):
    points = pd.read_csv(Path(PUBLISHED_POINTS) / file)
    return points[points["model"] == model]


def test_figures_stand_in_the_order_of_their_numbers():
    names = figures_for_overview_job(MINI)
    assert names[:4] == ["fig2a", "fig2b", "fig4", "fig5"]
    assert names[-4:] == ["fig10b", "fig12a", "fig12b", "fig12c"]


@pytest.mark.parametrize(
    ("name", "file", "model", "columns"),
    [
        ("fig9", "fig9.csv", "ViT", ("normalized_depth", "variance")),
        ("fig9", "fig9.csv", "ResNet", ("normalized_depth", "variance")),
        ("fig8", "fig8.csv", "ViT", ("normalized_depth", "delta_log_amplitude")),
        ("fig2b", "fig2b.csv", "ResNet", ("frequency", "change")),
        ("fig12b", "fig12b.csv", "ViT", ("accuracy", "robustness")),
    ],
)
def test_published_points_are_those_of_the_file(published, name, file, model, columns):
    points = read(file, model)
    assert drawn(axes_of(published, name), *(points[each] for each in columns))


def test_published_points_of_two_metrics_are_one_point(published):
    points = read("fig5.csv", "PiT").set_index("metric")["value"]
    assert drawn(axes_of(published, "fig5"), [points["error_percent"]], [points["nll_train"]])


def test_the_legend_names_each_look_once_with_all_models_that_have_it(published):
    (legend,) = legends_of(published)
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[:2] == ["ResNet or ResNet (scenes) or CNN", "ViT or ViT (scenes)"]
    of_blocks = {*LABELS_OF_KINDS.values(), INTERVAL}
    named = [name for label in labels if label not in of_blocks for name in label.split(" or ")]
    assert sorted(named) == sorted({each.label for figure in shown() for each in figure.members
                                    if each.model in figure.published})  # fmt: skip


def test_published_units_stand_in_their_order(published):
    points = read("fig10b_swin.csv", "Swin").sort_values("index")
    count = len(points)
    middles = (np.arange(count) + 0.5) / count
    assert drawn(axes_of(published, "fig10b"), middles, points["change"])


def test_published_densities_are_per_decade(published):
    points = read("fig12c_hessian.csv", "ResNet")
    points = points.sort_index()
    at = points["eigenvalue"]
    found = [line.get_xydata() for line in axes_of(published, "fig12c")[0].lines]
    (line,) = [each for each in found if len(each) == len(at) and at.iloc[0] in each[:, 0]]
    order = dict(line)
    for value, density in zip(at, points["density"], strict=True):
        assert order[value] == pytest.approx(density * abs(value) * np.log(10), abs=1e-9)


def sketch(draw, points):
    with style(STYLE):
        axes = Figure().subplots()
        draw(Panel(axes, Look("black", "o"), Legend(), points))
    return axes


def expected(table, model):
    points = pd.read_csv(EXPECTED / f"{table}.csv")
    return points[points["model"] == model]


def test_measured_variances_are_drawn_with_a_band_for_each_msa():
    points = expected("feature_variance", "vit").sort_values("index")
    axes = sketch(sketches.sketch_feature_variance, points)
    assert drawn([axes], points["depth"], points["variance"])
    assert len(axes.patches) == (points["kind"] == "msa").sum() == 12


def test_networks_whose_blocks_lie_at_other_depths_have_panels_of_their_own(published):
    """Gray bands of a ViT under the curve of a ResNet would say that MSAs make it fall."""
    resnet, vit = axes_of(published, "fig9")
    for axes, model in ((resnet, "ResNet"), (vit, "ViT")):
        points = read("fig9.csv", model)
        assert drawn([axes], points["normalized_depth"], points["variance"])
        assert len(axes.lines) == 1
        hatched = [band for band in axes.patches if band.get_hatch()]
        assert len(hatched) == points["subsampling"].sum()
        assert len(axes.patches) - len(hatched) == (points["kind"] == "msa").sum()
    (legend,) = legends_of(published)
    assert {"MSA", "subsampling"} <= {text.get_text() for text in legend.get_texts()}


def test_changes_are_drawn_of_each_network_in_percent(published):
    for axes, model in zip(axes_of(published, "fig9_change"), ("ResNet", "ViT"), strict=True):
        bars = [bar for bar in axes.patches if not bar.get_hatch()]
        expected = 100 * read("fig9.csv", model)["variance"].pct_change()[1:]
        np.testing.assert_allclose([bar.get_height() for bar in bars], expected, rtol=1e-9)


def test_an_axis_of_eigenvalues_shows_that_it_is_logarithmic(published):
    (axes,) = axes_of(published, "fig4")
    axis = axes.xaxis
    assert [*axis.get_majorticklocs()] == [-1000, 0, 1000]
    shown = [text.get_text() for text in axis.get_majorticklabels()]
    assert shown == ["\N{MINUS SIGN}10³", "0", "10³"]
    assert {2, 5, 10, 100, 300, -2, -10, -300} <= {round(each) for each in axis.get_minorticklocs()}


def test_claims_that_two_figures_count_stand_below_the_first():
    claims = pd.read_csv(EXPECTED / "claims.csv")
    again = claims[claims["figure"] == "fig9"].assign(figure="fig9_change")
    # A later figure of the page counts the same claim on a network of its own.
    later = again[again["model"] == "vit_scenes"].assign(figure="fig12b", model="convnext")
    counted = pd.concat([claims, again, later])
    figure = styled(plot_overview, shown(), counted, LABELS)
    texts = [" ".join(text.get_text().split()) for axes in figure.axes for text in axes.texts]
    (said,) = (text for text in texts if "MSAs reduce the feature map variance" in text)
    assert said.startswith("fig9: ")
    of_claim = once_per_recipe(counted[counted["claim"] == "msa_reduces_variance"])
    assert f"of {len(of_claim)} networks" in said
    assert "convnext" in {*of_claim["model"]}


def test_measured_amplitudes_are_those_at_the_highest_frequency():
    points = expected("fourier", "vit")
    on_diagonal = (points["measure"] == "diagonal") & (points["frequency"] == 1)
    ends = points[on_diagonal].sort_values("index")
    axes = sketch(sketches.sketch_fourier_depth, points.sample(frac=1, random_state=0))
    assert drawn([axes], ends["depth"], ends["delta_log_amplitude"])


def test_measured_robustness_is_what_is_left_of_the_mean_error():
    points = expected("corruption_error", "vit")
    (mean,) = points[points["corruption"] == "mean"].to_dict("records")
    axes = sketch(sketches.sketch_robustness_by_accuracy, points)
    assert drawn([axes], [100 - 100 * mean["clean_error"]], [100 - 100 * mean["error"]])


def test_measured_eigenvalues_are_a_density_that_adds_up_to_one():
    points = expected("hessian", "vit")
    points = points[points["snapshot"] == "end"]
    (line,) = sketch(sketches.sketch_hessian, points).lines
    at, density = line.get_xydata().T
    total = sum(
        np.trapezoid(density[side], np.log10(np.abs(at[side]))) * sign
        for side, sign in ((at < 0, -1), (at > 0, 1))
    )
    assert total == pytest.approx(1, abs=0.01)


def test_steps_of_a_buildup_are_joined_if_they_were_kept():
    steps = pd.read_csv(EXPECTED / "buildup_fig12a.csv").sort_values("step", ignore_index=True)
    axes = sketch(sketch_buildup, steps)
    for kept, line in zip((True, False), axes.lines, strict=True):
        rows = steps[(steps["decision"] != "rejected") == kept]
        np.testing.assert_allclose(line.get_xydata(), np.c_[rows.index, 100 * rows["accuracy"]])


def test_verdicts_on_a_figure_name_it_and_how_many():
    claims = pd.read_csv(EXPECTED / "claims.csv")
    figure = styled(plot_overview, shown(), claims, LABELS)
    every = [" ".join(text.get_text().split()) for each in figure.axes for text in each.texts]
    (row,) = [text for text in every if "higher test error" in text]
    assert row.startswith("fig5: ")
    # Trainings of one recipe count once.
    every_row = once_per_recipe(claims)
    rows = every_row[every_row["claim"] == "weak_bias_errs_more"]
    holds = rows["holds"].str.startswith("yes").sum()
    assert f"holds in {holds} of {len(rows)} pairs" in row
    assert rows["statement"].iloc[0] in row
    # What most networks of the study deny has no tick, whatever the figure above it shows.
    at = [
        n
        for n, text in enumerate(every)
        if text.startswith("fig9: MSAs reduce the feature map var")
    ]
    assert [every[n - 1] for n in at] == [VERDICT_LOOKS["no, in this network"].mark]
    of_msas = every_row[every_row["claim"] == "msa_reduces_variance"]
    assert "vit_1" not in {*of_msas["model"]}
    held = of_msas[of_msas["holds"].str.startswith("yes")]["model"]
    assert f"holds in {len(held)} of {len(of_msas)} networks" in every[at[0]]
    assert [*held] == ["vit_scenes"]
    assert f"({LABELS['vit_scenes']})" in every[at[0]]
    edges = [text.get_window_extent().x1 for each in figure.axes for text in each.texts]
    assert max(edges) <= figure.bbox.x1


@pytest.mark.parametrize("width", [3.25, 5.5])
def test_the_page_fits_paper_and_nothing_lies_over_the_claims(width):
    claims = pd.read_csv(EXPECTED / "claims.csv")
    figure = styled(plot_overview, shown(), claims, LABELS, own={"width": width})
    # US Letter is 11 inches high.
    assert figure.get_figwidth() == 5.5
    assert figure.get_figheight() < 11
    assert_claims_are_whole(figure)


def assert_claims_are_whole(figure):
    boxes = [text.get_window_extent() for text in figure.axes[-1].texts]
    (legend,) = legends_of(figure)
    highest = legend.get_window_extent().y0
    assert all(is_whole(figure, box) and box.y1 < highest for box in boxes)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_claims_have_their_place_where_names_of_images_take_three_lines():
    claims = pd.read_csv(EXPECTED / "claims.csv")
    images = cycle(("shapes32", "scenes32"))
    seen = [
        each._replace(data={member.model: next(images) for member in each.members})
        for each in shown()
    ]
    assert_claims_are_whole(styled(plot_overview, seen, claims, LABELS))
