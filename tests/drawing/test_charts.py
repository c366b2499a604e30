from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tests.helpers.claims import published_variances
from tests.helpers.drawing import RESNET, VIT, styled
from tests.helpers.shown import legend_labels, legends_of
from vitscope.drawing.charts import OPEN, Chart, PublishedPoints, Rows, Steps
from vitscope.drawing.figure import Member
from vitscope.drawing.saving import save, style
from vitscope.measures.attention.show import chart_by_head
from vitscope.measures.bootstrap import spread
from vitscope.package_data import STYLE

# Changes of four blocks, in standard errors of their means over the images.
SURE, UNSURE = 6.0, 0.5
STEPS = [SURE, -UNSURE, -SURE, UNSURE]
CHART = Chart(Rows("Variance", PublishedPoints("variance"), Steps("variance")))


def table(model: str, steps: list[float], images: int = 200) -> pd.DataFrame:
    """Return a table of variances whose changes are exactly so many standard errors."""
    noise = np.random.default_rng(1).standard_normal((images, len(steps)))
    noise = (noise - noise.mean(axis=0)) / noise.std(axis=0)
    changes = np.array(steps) / np.sqrt(images) + noise
    values = 5 + np.cumsum(np.column_stack([np.zeros(images), changes]), axis=1)
    depth, kinds = np.linspace(0, 1, len(steps) + 1), ["stem"] + ["conv"] * len(steps)
    columns = {"variance": values.mean(axis=0)} | spread(values, 400, seed=0).columns("variance")
    found = pd.DataFrame({"index": range(len(kinds)), "kind": kinds, "depth": depth, **columns})
    return found.assign(model=model, height=4, width=4)


def draw(rows: pd.DataFrame, *members, theirs=None, together: bool = False) -> Figure:
    with style(STYLE):
        return CHART(rows, members=members, published=theirs, together=together)


def hollow(figure: Figure) -> list[list[float]]:
    """Return where marks without a line are, line by line: those that are white."""
    lines = [line for axes in figure.axes for line in axes.lines]
    white = [line for line in lines if line.get_linestyle() == "None"]
    assert {to_hex(line.get_markerfacecolor()) for line in white} <= {"#ffffff"}
    return [list(line.get_xdata()) for line in white]


def entry(figure: Figure, label: str) -> Line2D:
    (legend,) = legends_of(figure)
    place = legend_labels(figure).index(label)
    handle = legend.legend_handles[place]
    return handle[0] if isinstance(handle, tuple) else handle


@pytest.mark.parametrize("together", [False, True])
def test_marks_after_blocks_of_open_sign_are_hollow(together):
    rows = pd.concat([table("vit", STEPS), table("resnet", [SURE] * 4)])
    figure = draw(rows, VIT, RESNET, together=together)
    assert hollow(figure) == [[0.5, 1.0]]
    assert legend_labels(figure).count(OPEN) == 1


def test_where_all_signs_are_certain_the_legend_says_nothing_of_them():
    figure = draw(table("vit", [SURE, -SURE]), VIT)
    assert hollow(figure) == []
    assert OPEN not in legend_labels(figure)


def test_without_resamples_no_mark_is_hollow():
    rows = table("vit", STEPS).drop(columns="variance_resampled")
    assert hollow(draw(rows, VIT)) == []
    # A single image has no resamples.
    assert hollow(draw(rows.assign(variance_resampled=None), VIT)) == []


def test_a_change_from_or_to_nothing_is_not_open():
    rows = table("vit", STEPS).astype({"variance_resampled": object})
    rows.loc[2, "variance"] = np.nan
    rows.at[2, "variance_resampled"] = np.full(400, np.nan, np.float32)
    assert hollow(draw(rows, VIT)) == [[1.0]]


def test_what_is_published_is_dotted_and_has_no_part_in_it():
    theirs = {"vit": published_variances([0, 0.5, 1], [5.0, 5.1, 5.2])["m"]}
    figure = draw(table("vit", STEPS), VIT, theirs=theirs)
    (dotted,) = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert list(dotted.get_xdata()) == [0, 0.5, 1]
    assert hollow(figure) == [[0.5, 1.0]]
    assert entry(figure, "published").get_linestyle() == ":"
    assert entry(figure, OPEN).get_linestyle() == "-"


# So many that an empty panel would push the others out of the figure.
MEMBERS = [Member(name, name, "vit") for name in ("none", "one", "two", "three")]


def heads() -> pd.DataFrame:
    rows = pd.DataFrame({"attention": [0, 0, 1, 1], "head": [0, None] * 2, "depth": [0, 0, 1, 1]})
    values = {"distance": [3.0, 3.0, 4.0, 4.0], "distance_low": 2.0, "distance_high": 5.0}
    tables = [rows.assign(model=each.model, **values) for each in MEMBERS]
    tables[0][[*values]] = np.nan
    return pd.concat(tables)


def points() -> pd.DataFrame:
    rows = pd.DataFrame({"index": range(3), "depth": [0, 0.5, 1], "kind": ["stem", "msa", "mlp"]})
    values = {"similarity": [0.1, 0.2, 0.3], "ci_low": 0.0, "ci_high": 0.5}
    tables = [
        rows.assign(model=each.model, stage=0, height=4, width=4, **values) for each in MEMBERS
    ]
    tables[0][[*values]] = np.nan
    return pd.concat(tables)


@pytest.mark.parametrize(
    ("table", "chart"),
    [
        (heads(), chart_by_head("distance", "Distance")),
        (points(), Chart(Rows("Similarity", Steps("similarity")))),
    ],
)
def test_a_model_without_values_is_named_in_its_panel(
    tmp_path: Path, table: pd.DataFrame, chart: Chart
) -> None:
    with style(STYLE):
        figure = chart(table, members=MEMBERS)
        save(figure, tmp_path / "a.png", "a", {})
    said = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert said == [["no values"], [], [], []]
    # All panels are as large.
    sizes = [axes.get_window_extent().size for axes in figure.axes]
    np.testing.assert_allclose(sizes, [sizes[1]] * 4, rtol=0.05)
    assert min(map(min, sizes)) > 50


@pytest.mark.parametrize("width", [3.25, 5.5])
def test_a_legend_stands_where_a_panel_is_missing(width):
    members = [Member("vit", f"ViT {number}", "vit") for number in range(5)]
    figure = styled(CHART, table("vit", STEPS), members=members, own={"width": width})
    *others, last = figure.axes
    (legend,) = legends_of(figure)
    box, right = legend.get_window_extent(), max(axes.get_window_extent().x1 for axes in others)
    assert last.get_window_extent().x1 < box.x0
    assert box.x1 <= right + 0.1 * figure.dpi
    assert last.get_window_extent().y0 <= box.y0
    assert box.y1 <= last.get_window_extent().y1
    # No word is broken; where one panel is missing nothing is below all.
    assert {*" ".join(legend_labels(figure)).split()} <= {*f"{OPEN} 95 % interval".split()}


def test_a_legend_that_is_too_large_for_the_place_of_a_panel_is_below_all():
    members = [Member("vit", f"ViT {number}", "vit") for number in range(5)]
    long = Chart(Rows("Variance", *(Steps("variance", f"curve {n}") for n in range(30))))
    figure = styled(long, table("vit", STEPS), members=members)
    (legend,) = legends_of(figure)
    assert legend.get_window_extent().y1 < min(axes.get_window_extent().y0 for axes in figure.axes)
