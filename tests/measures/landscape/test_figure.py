import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.contour import QuadContourSet
from matplotlib.path import Path as Outline
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.proj3d import proj_transform

from tests.helpers.drawing import RESNET, VIT, drawn_from
from tests.helpers.shown import legend_labels
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError
from vitscope.measures.landscape.show import (
    above_minimum,
    drawn_landscape_points,
    landscape_caveats,
    read_landscapes,
    surface_faces_below_cut,
)

KINDS = ("landscape", "landscape_contour", "landscape_slices")
STEPS = np.linspace(-1, 1, 9)


def landscape_of(model: str, steepness: float) -> pd.DataFrame:
    """Return a bowl that is not symmetric, so that x and y cannot be confused; x varies fastest."""
    y, x = (each.ravel() for each in np.meshgrid(STEPS, STEPS, indexing="ij"))
    nll = 2 + steepness * (x**2 + 0.61 * y**2 + 0.29 * x * y + 0.13 * x**3)
    l2 = 700 + 20 * (x**2 + y**2)
    loss = nll + 0.05 * l2
    facts = {"model": model, "direction": 0, "weight_decay": 0.05, "clean": False}
    return pd.DataFrame({"x": x, "y": y, "loss": loss, "nll": nll} | facts)


@pytest.fixture
def table() -> pd.DataFrame:
    """Return a flat landscape, and one with corners that are steep or overflow, in random order."""
    steep = landscape_of("resnet", 14.7)
    steep.loc[[0, 80], ["loss", "nll"]] = np.inf
    steep.loc[1, ["loss", "nll"]] = np.nan
    # Some points of another pair of directions, which are not drawn.
    other = landscape_of("vit", 7.3).iloc[20:40].assign(direction=1, loss=-99.0)
    return pd.concat([steep, landscape_of("vit", 3.9), other]).sample(frac=1, random_state=0)


@pytest.fixture
def drawn(table):
    def draw_it(kind, *members, table=table):
        return drawn_from(kind, {"landscape": table}, members or (RESNET, VIT))

    return draw_it


def grid_of(table: pd.DataFrame, model: str) -> np.ndarray:
    """Return the heights above the minimum, a row for each y; NaN if they are not finite."""
    rows = table[(table["model"] == model) & (table["direction"] == 0)]
    loss = rows.pivot(index="y", columns="x", values="loss").to_numpy()
    loss = np.where(np.isfinite(loss), loss, np.nan)
    return loss - np.nanmin(loss)


def cut_of(table: pd.DataFrame) -> float:
    """Return the cut by the published rule: the paper cuts at 42, 4.4 times its ViT's median."""
    return 4.4 * min(np.nanmedian(grid_of(table, model)) for model in ("resnet", "vit"))


def maps_of(figure):
    return [axes for axes in figure.axes if axes.get_title().startswith(("ResNet-50", "ViT-Ti"))]


def faces_of(axes):
    (faces,) = (each for each in axes.collections if isinstance(each, Poly3DCollection))
    return faces


def corners_of(faces) -> list[np.ndarray]:
    """Return the corners of each face as they were given to matplotlib, (corners, 3)."""
    absent = np.broadcast_to(faces._invalid_vertices, faces._faces.shape[:2])
    return [face[~none] for face, none in zip(faces._faces, absent, strict=True)]


def test_the_cut_follows_from_the_flattest_model(table):
    landscapes = read_landscapes(table, (RESNET, VIT))
    assert landscapes.cut == pytest.approx(cut_of(table))
    assert landscapes.cut > np.nanmax(landscapes.surfaces[1].loss)
    # The cut is never above the highest loss.
    flat = read_landscapes(table, [VIT])
    assert flat.cut == np.nanmax(flat.surfaces[0].loss)


def test_a_flat_landscape_is_drawn(drawn, table):
    for kind in KINDS:
        drawn(kind, VIT, table=table.assign(loss=3.0, nll=3.0))


def test_the_published_grids_are_cut_as_in_the_paper(grids, drawn):
    figure = drawn("landscape", table=grids)
    for axes, model, count in zip(maps_of(figure), ("resnet", "vit"), (368, 400), strict=True):
        below = grid_of(grids, model) <= 42
        whole = below[:-1, :-1] & below[:-1, 1:] & below[1:, :-1] & below[1:, 1:]
        # The paper leaves out faces with a corner above 42; here they are cut.
        shown = surface_faces_below_cut(above_minimum(grids, Member(model, model, model)), 42)
        squares = [len(each) == 4 and np.ptp(each, axis=0)[:2].min() > 0.099 for each in shown]
        assert sum(squares) == whole.sum() == count
        assert len(corners_of(faces_of(axes))) >= len(shown)


def corners_by_hand(heights: np.ndarray, row: int, column: int, cut: float) -> set:
    """Return the corners of a face below a cut, and the points at which its edges cross the cut."""
    places = [(row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column)]
    corners = [(STEPS[j], STEPS[i], float(heights[i, j])) for i, j in places]
    found = {corner for corner in corners if corner[2] <= cut}
    for (x, y, z), (x1, y1, z1) in zip(corners, corners[1:] + corners[:1], strict=True):
        if min(z, z1) <= cut < max(z, z1):
            share = (cut - z) / (z1 - z)
            found.add((x + share * (x1 - x), y + share * (y1 - y), cut))
    return found


def test_faces_are_the_table_and_end_at_the_cut(table):
    cut = cut_of(table)
    for member in (RESNET, VIT):
        heights = grid_of(table, member.model)
        shown = surface_faces_below_cut(above_minimum(table, member), cut)
        found = [sorted(map(tuple, face)) for face in shown]
        expected = [
            sorted(corners_by_hand(heights, row, column, cut))
            for row, column in np.ndindex(8, 8)
            if np.isfinite(heights[row : row + 2, column : column + 2]).all()
        ]
        expected = [each for each in expected if each]
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other)
        # The rim is flat, without shards, where the loss goes on beyond the cut.
        assert max(face[:, 2].max() for face in shown) <= cut * (1 + 1e-12)


def area_of(corners: np.ndarray) -> float:
    x, y = corners[:, 0], corners[:, 1]
    return abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2


def test_bands_of_faces_have_the_colour_of_their_loss(drawn, table):
    figure, cut = drawn("landscape"), cut_of(table)
    for axes, member in zip(maps_of(figure), (RESNET, VIT), strict=True):
        shown = corners_of(faces_of(axes))
        whole = surface_faces_below_cut(above_minimum(table, member), cut)
        assert sum(map(area_of, shown)) == pytest.approx(sum(map(area_of, whole)))
        # However steep a wall is, no band of it has a colour that is far from its loss.
        assert max(np.ptp(each[:, 2]) for each in shown) < cut / 8
        shade = matplotlib.colormaps["plasma"]([each[:, 2].mean() / cut for each in shown])
        np.testing.assert_allclose(faces_of(axes)._facecolor3d, shade, atol=1e-12)


def test_the_plane_lies_below_its_surface_and_its_edges_are_named(drawn):
    for axes in maps_of(drawn("landscape")):
        ((x, y, z),) = [line.get_data_3d() for line in axes.lines]
        assert {*zip(x, y, z, strict=True)} == {(i, j, 0) for i in (-1, 1) for j in (-1, 1)}
        first, second = axes.texts
        assert [first.get_text(), second.get_text()] == ["first\ndirection", "second direction"]
        middles = [proj_transform(*at, 0, axes.get_proj())[:2] for at in ((0, 1), (1, 0))]
        np.testing.assert_allclose([first.xy, second.xy], middles)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_landscape_that_the_cut_of_another_leaves_nearly_empty_says_so(drawn, table, kind):
    steep = table[table["model"] == "resnet"]
    steep = steep.assign(loss=1e4 * (steep["loss"] - steep["loss"].min()))
    both = pd.concat([steep, table[table["model"] == "vit"]])
    resnet, vit = maps_of(drawn(kind, table=both))
    # All of the 81 points are cut, except for the trained weights.
    assert resnet.get_title() == "ResNet-50\n99 % of points cut"
    assert vit.get_title() == "ViT-Ti"


def test_figures_say_where_they_are_cut_if_they_are(drawn, table):
    said = f"cut at {cut_of(table):.3g}"
    for members, expected in (((RESNET, VIT), [said]), ((VIT,), [])):
        surfaces, contours = (drawn(kind, *members) for kind in KINDS[:2])
        (bar,) = (axes for axes in surfaces.axes if axes.get_ylabel())
        assert [bar.get_title(loc="left")] == (expected or [""])
        assert legend_labels(contours) == expected


def test_contours_end_at_the_cut(drawn, table):
    resnet, vit = maps_of(drawn("landscape_contour"))
    heights, cut = grid_of(table, "resnet"), cut_of(table)
    bands = next(each for each in resnet.collections if isinstance(each, QuadContourSet))
    polygons = [polygon for path in bands.get_paths() for polygon in path.to_polygons()]
    half = (STEPS[1] - STEPS[0]) / 2
    for row, column in np.ndindex(8, 8):
        # Take a point beside the middle of the face, since a contour line may cross the middle.
        middle = (STEPS[column] + 0.9 * half, STEPS[row] + 1.07 * half)
        inside = sum(Outline(polygon).contains_point(middle) for polygon in polygons) % 2
        face = heights[row : row + 2, column : column + 2]
        if (face <= cut).all() or not (face <= cut).any():
            assert inside == (face <= cut).all()
    # The outline crosses edges of faces where the loss equals the cut: it does not follow stairs.
    x, y = np.concatenate(polygons).T
    on_row = np.isclose(y[:, None], STEPS).any(axis=1) & (np.abs(x) < 1) & (np.abs(y) < 1)
    between = on_row & ~np.isclose(x[:, None], STEPS).any(axis=1)
    levels = [
        np.interp(at, STEPS, heights[np.abs(STEPS - up).argmin()])
        for at, up in zip(x[between], y[between], strict=True)
    ]
    assert np.isclose(levels, cut).sum() > 2
    assert [bool(axes.patch.get_hatch()) for axes in (resnet, vit)] == [True, False]


def test_slices_are_the_axes_of_the_plane(drawn, table):
    figure = drawn("landscape_slices")
    for axes, along, across in zip(figure.axes, "xy", "yx", strict=True):
        lines = iter(axes.lines)
        for model, color in (("resnet", "#1f77b4"), ("vit", "#d62728")):
            on_axis = (table["direction"] == 0) & (table[across] == 0)
            rows = table[(table["model"] == model) & on_axis].sort_values(along)
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
    assert first.get_ylim()[1] <= 1.1 * cut_of(table)


BOTH = "The loss without the L2 term and on clean images"


@pytest.mark.parametrize("kind", KINDS)
def test_the_figure_says_if_its_loss_is_without_its_term_or_on_clean_images(drawn, table, kind):
    assert drawn(kind).get_suptitle().strip() == ""
    figure = drawn(kind, table=table.assign(weight_decay=0.0, clean=True))
    assert figure.get_suptitle().strip() == BOTH
    one = (
        landscape_caveats(table.assign(weight_decay=0.0), [VIT]),
        landscape_caveats(table.assign(clean=True), [VIT]),
    )
    assert f"{one[0]} and {one[1].removeprefix('The loss ')}" == BOTH


def test_tables_that_cannot_be_drawn_are_refused(table):
    with pytest.raises(VitscopeError, match="has 80 points of the model 'vit'"):
        drawn_landscape_points(table[table["model"] == "vit"].iloc[1:], VIT)
    with pytest.raises(VitscopeError, match=r"loss of ViT-Ti is finite nowhere .* lower analysis"):
        drawn_landscape_points(table.assign(loss=np.inf), VIT)
