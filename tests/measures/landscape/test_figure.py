"""The landscape figures show their table: faces, contours and slices, and what is cut."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.contour import QuadContourSet
from matplotlib.path import Path as Outline
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from tests.helpers.drawing import draw_kind
from vitscope.drawing.figure import Member
from vitscope.drawing.saving import style
from vitscope.errors import VitscopeError
from vitscope.measures.landscape.above_minimum import above_minimum, common_cut

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
KINDS = ("landscape", "landscape_contour", "landscape_slices")
STEPS = np.linspace(-1, 1, 9)


def landscape_of(model: str, steepness: float) -> pd.DataFrame:
    """A bowl that no axis mirrors, so that x and y cannot be confused; x varies fastest."""
    y, x = (each.ravel() for each in np.meshgrid(STEPS, STEPS, indexing="ij"))
    nll = 2 + steepness * (x**2 + 0.61 * y**2 + 0.29 * x * y + 0.13 * x**3)
    l2 = 700 + 20 * (x**2 + y**2)
    loss = nll + 0.05 * l2
    facts = {"model": model, "weight_decay": 0.05, "clean": False}
    return pd.DataFrame({"x": x, "y": y, "loss": loss, "nll": nll} | facts)


@pytest.fixture
def table() -> pd.DataFrame:
    """A flat model, and one whose corners are steep or overflow, in no particular order."""
    steep = landscape_of("resnet", 14.7)
    steep.loc[[0, 80], ["loss", "nll"]] = np.inf
    steep.loc[1, ["loss", "nll"]] = np.nan
    return pd.concat([steep, landscape_of("vit", 3.9)]).sample(frac=1, random_state=0)


@pytest.fixture
def drawn(table, style_file):
    def draw_it(kind, *members, table=table):
        with style(style_file):
            return draw_kind(kind, {"landscape": table}, members or (RESNET, VIT), {})

    return draw_it


def grid_of(table: pd.DataFrame, model: str) -> np.ndarray:
    """The heights above the minimum, a row for each y, NaN where they are not finite."""
    rows = table[table["model"] == model]
    loss = rows.pivot(index="y", columns="x", values="loss").to_numpy()
    loss = np.where(np.isfinite(loss), loss, np.nan)
    return loss - np.nanmin(loss)


def cut_of(table: pd.DataFrame) -> float:
    """The published rule, in one line: 42 of the paper is 4.4 times the median of its ViT."""
    return 4.4 * min(np.nanmedian(grid_of(table, model)) for model in ("resnet", "vit"))


def maps_of(figure):
    return [axes for axes in figure.axes if axes.get_title() in {"ResNet-50", "ViT-Ti"}]


def faces_of(axes):
    (faces,) = (each for each in axes.collections if isinstance(each, Poly3DCollection))
    return faces


def corners_of(faces) -> np.ndarray:
    """The corners of each face as they were given, (faces, 4, 3)."""
    return np.asarray(faces._faces)


# The cut


def test_the_cut_follows_from_the_flattest_model(table):
    landscapes = [above_minimum(table, member) for member in (RESNET, VIT)]
    assert common_cut(landscapes) == pytest.approx(cut_of(table))
    assert common_cut(landscapes) > np.nanmax(landscapes[1].loss)


def test_a_cut_is_never_above_what_is_there(table):
    flat = above_minimum(table, VIT)
    assert common_cut([flat]) == np.nanmax(flat.loss)


def test_a_flat_landscape_is_drawn(drawn, table):
    for kind in KINDS:
        drawn(kind, VIT, table=table.assign(loss=3.0, nll=3.0))


def published(shared: Path) -> pd.DataFrame:
    folder = shared / "published"
    if not folder.is_dir():
        pytest.skip(f"needs the published grids, in {folder}")
    models = {"resnet": "landscape_resnet_50.csv", "vit": "landscape_vit_ti.csv"}
    names = ["x", "y", "l1", "l2", "nll"]
    grids = [
        pd.read_csv(folder / file, header=None, usecols=range(5), names=names).assign(model=model)
        for model, file in models.items()
    ]
    grid = pd.concat(grids, ignore_index=True).assign(weight_decay=0.05, clean=False)
    return grid.assign(loss=grid["nll"] + 0.05 * grid["l2"])


def test_the_published_grids_are_cut_as_in_the_paper(shared, drawn):
    table = published(shared)
    figure = drawn("landscape", table=table)
    for axes, model, count in zip(maps_of(figure), ("resnet", "vit"), (368, 400), strict=True):
        below = grid_of(table, model) <= 42
        whole = below[:-1, :-1] & below[:-1, 1:] & below[1:, :-1] & below[1:, 1:]
        assert len(corners_of(faces_of(axes))) == whole.sum() == count


def test_the_published_resnet_is_the_steep_one(shared):
    table = published(shared)
    resnet, vit = (np.nanmedian(grid_of(table, model)) for model in ("resnet", "vit"))
    assert resnet > 1.5 * vit
    # The minimum is at the trained weights, as it is in the paper.
    for model in ("resnet", "vit"):
        row, column = np.unravel_index(np.nanargmin(grid_of(table, model)), (21, 21))
        assert (abs(row - 10), abs(column - 10)) <= (1, 1)


# The surface


def test_faces_are_the_table_and_those_at_a_cut_are_absent(drawn, table):
    figure, cut = drawn("landscape"), cut_of(table)
    for axes, model in zip(maps_of(figure), ("resnet", "vit"), strict=True):
        heights = grid_of(table, model)
        expected = set()
        for row, column in np.ndindex(8, 8):
            square = heights[row : row + 2, column : column + 2]
            if (square <= cut).all():
                corners = [
                    (row, column),
                    (row, column + 1),
                    (row + 1, column),
                    (row + 1, column + 1),
                ]
                expected.add(
                    frozenset((STEPS[j], STEPS[i], float(heights[i, j])) for i, j in corners)
                )
        found = {frozenset(map(tuple, face.tolist())) for face in corners_of(faces_of(axes))}
        assert found == expected
    assert 20 < len(corners_of(faces_of(maps_of(figure)[0]))) < 60
    assert len(corners_of(faces_of(maps_of(figure)[1]))) == 64


def test_surfaces_share_view_scale_and_colours(drawn, table):
    figure, cut = drawn("landscape"), cut_of(table)
    for axes in maps_of(figure):
        assert (axes.elev, axes.azim) == (15, 15)
        assert axes.get_zlim() == pytest.approx((0, cut))
        assert axes.get_xlim() == axes.get_ylim() == (-1, 1)
        assert not axes.axison
        faces = faces_of(axes)
        middle = corners_of(faces)[:, :, 2].mean(axis=1)
        expected = matplotlib.colormaps["plasma"](middle / cut)
        np.testing.assert_allclose(faces._facecolor3d, expected, atol=1e-12)
    (bar,) = (axes for axes in figure.axes if axes.get_ylabel() == "Loss above its minimum")
    assert bar.get_ylim() == pytest.approx((0, cut))
    assert bar.get_title(loc="left") == f"cut at {cut:.3g}"


def test_what_is_not_cut_is_not_said_to_be(drawn):
    (bar,) = (axes for axes in drawn("landscape", VIT).axes if axes.get_ylabel())
    assert bar.get_title(loc="left") == ""
    assert not drawn("landscape_contour", VIT).legends


# The contours


def bands_at_points(bands: QuadContourSet) -> dict[tuple[int, int], list[int]]:
    """In which bands of height each point of the grid lies, as far as it is in the middle."""
    found: dict[tuple[int, int], list[int]] = {}
    for number, path in enumerate(bands.get_paths()):
        inside = np.zeros(81, bool)
        points = [(x, y) for y in STEPS for x in STEPS]
        for polygon in path.to_polygons():
            # A hole is a polygon within another: what is in both is in neither.
            inside ^= Outline(polygon).contains_points(points)
        for position in np.flatnonzero(inside):
            found.setdefault(divmod(int(position), 9), []).append(number)
    return found


def test_contours_are_the_table(drawn, table):
    figure, cut = drawn("landscape_contour"), cut_of(table)
    checked = 0
    for axes, model in zip(maps_of(figure), ("resnet", "vit"), strict=True):
        bands = next(each for each in axes.collections if isinstance(each, QuadContourSet))
        assert bands.cmap.name == "plasma"
        assert bands.levels[0] == 0
        assert bands.levels[-1] == pytest.approx(cut)
        heights = grid_of(table, model)
        for (row, column), numbers in bands_at_points(bands).items():
            if 0 < row < 8 and 0 < column < 8 and heights[row, column] > 0:
                expected = np.searchsorted(bands.levels, heights[row, column]) - 1
                assert numbers == [expected]
                checked += 1
    assert checked > 60


def test_contours_leave_out_what_the_surface_does(drawn, table):
    resnet, vit = maps_of(drawn("landscape_contour"))
    heights, cut = grid_of(table, "resnet"), cut_of(table)
    bands = next(each for each in resnet.collections if isinstance(each, QuadContourSet))
    half = (STEPS[1] - STEPS[0]) / 2
    for row, column in np.ndindex(8, 8):
        # Off the middle of a face, which a contour line may cross.
        middle = (STEPS[column] + 0.9 * half, STEPS[row] + 1.07 * half)
        polygons = [polygon for path in bands.get_paths() for polygon in path.to_polygons()]
        inside = sum(Outline(polygon).contains_point(middle) for polygon in polygons) % 2
        assert inside == (heights[row : row + 2, column : column + 2] <= cut).all()
    assert [bool(axes.patch.get_hatch()) for axes in (resnet, vit)] == [True, False]


def test_the_legend_of_contours_says_where_they_are_cut(drawn, table):
    (legend,) = drawn("landscape_contour").legends
    assert [text.get_text() for text in legend.get_texts()] == [f"cut at {cut_of(table):.3g}"]


# The slices


def test_slices_are_the_axes_of_the_plane(drawn, table):
    figure = drawn("landscape_slices")
    for axes, along, across in zip(figure.axes, "xy", "yx", strict=True):
        lines = iter(axes.lines)
        for model, color in (("resnet", "#1f77b4"), ("vit", "#d62728")):
            rows = table[(table["model"] == model) & (table[across] == 0)].sort_values(along)
            for column in ("nll", "loss"):
                line = next(lines)
                np.testing.assert_array_equal(line.get_xdata(), rows[along])
                at_origin = rows.loc[rows[along] == 0, column].item()
                np.testing.assert_allclose(line.get_ydata(), rows[column] - at_origin)
                assert to_hex(line.get_color()) == color
    assert [axes.get_title() for axes in figure.axes] == ["First direction", "Second direction"]


def test_slices_leave_out_what_is_not_finite_and_end_at_the_cut(drawn, table):
    on_axis = (table["model"] == "resnet") & (table["y"] == 0) & (table["x"] == 1)
    table.loc[on_axis, ["loss", "nll"]] = np.inf
    first = drawn("landscape_slices", table=table).axes[0]
    assert np.isnan(first.lines[1].get_ydata()[-1])
    low, high = first.get_ylim()
    assert high <= 1.1 * cut_of(table)
    assert low < 0


# All kinds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({}, ""),
        ({"weight_decay": 0.0}, "Not the loss of training: without the L2 term"),
        ({"clean": True}, "Not the loss of training: on clean images"),
        (
            {"weight_decay": 0.0, "clean": True},
            "Not the loss of training: without the L2 term and on clean images",
        ),
    ],
)
def test_the_figure_says_if_its_loss_is_not_that_of_training(drawn, table, kind, change, note):
    figure = drawn(kind, table=table.assign(**change))
    assert figure.get_suptitle() == note


@pytest.mark.parametrize("kind", KINDS)
def test_tables_that_cannot_be_drawn_are_refused(drawn, table, kind):
    with pytest.raises(VitscopeError, match="landscape table has no model 'pit': delete"):
        drawn(kind, Member("pit", "PiT", "pit"))
    with pytest.raises(VitscopeError, match="has 80 points of the model 'vit'"):
        drawn(kind, VIT, table=table[table["model"] == "vit"].iloc[1:])
    with pytest.raises(VitscopeError, match=r"loss of ViT-Ti is finite nowhere .* lower analysis"):
        drawn(kind, VIT, table=table.assign(loss=np.inf))
