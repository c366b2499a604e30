import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from tests.helpers.drawing import RESNET, SWIN, VIT, drawn_from, laid_out
from tests.helpers.refusals import refusal
from tests.helpers.shown import legend_labels
from tests.measures.conftest import MODELS, cut_points
from vitscope.drawing.looks import BAND_COLORS
from vitscope.errors import VitscopeError


def between(first: str, second: str) -> pd.DataFrame:
    """Values that no two pairs share."""
    counts = len(MODELS[first][0]), len(MODELS[second][0])
    index, other = np.indices(counts).reshape(2, -1)
    value = np.random.default_rng(counts).uniform(0.02, 1, len(index))
    table = pd.DataFrame({"index": index, "other_index": other, "cka": value, "p": 0.005})
    return table.assign(model=first, other_model=second)


WITHIN = pd.concat(between(model, model) for model in MODELS).drop(columns="other_model")
# Of all models, in no particular order.
TABLES = {
    "cka": WITHIN.sample(frac=1, random_state=0),
    "blocks": pd.concat(map(cut_points, MODELS)).sample(frac=1, random_state=0),
}


def drawn(*members, **changed):
    return drawn_from("cka", TABLES | changed, members or (RESNET, VIT, SWIN))


def maps_of(figure):
    return [axes for axes in figure.axes if axes.images]


def cells_of(axes) -> AxesImage:
    (cells,) = axes.images
    return cells


def check_cells(axes, rows, across, up):
    """Check that cells have the values of a table, each in the middle of its depths."""
    cells = cells_of(axes)
    expected = rows.pivot(index=up, columns=across, values="cka").to_numpy()
    np.testing.assert_array_equal(cells.get_array(), expected)
    left, right, bottom, top = cells.get_extent()
    for low, high, count in ((bottom, top, len(expected)), (left, right, len(expected.T))):
        middles = low + (high - low) / count * (np.arange(count) + 0.5)
        np.testing.assert_allclose(middles, np.linspace(0, 1, count), atol=1e-12)
    assert cells.origin == "lower"
    assert cells.get_clim() == (0, 1)


def test_cells_are_the_table_with_the_origin_at_the_lower_left():
    for axes, model in zip(maps_of(drawn()), MODELS, strict=True):
        rows = TABLES["cka"][TABLES["cka"]["model"] == model]
        check_cells(axes, rows, across="other_index", up="index")


def test_values_below_0_are_within_the_colours():
    table = TABLES["cka"].copy()
    table.loc[table["cka"] < 0.1, "cka"] *= -1
    table.iloc[5, table.columns.get_loc("cka")] = -0.13
    for axes in maps_of(drawn(cka=table)):
        assert cells_of(axes).get_clim() == (-0.2, 1)


def test_dots_are_on_the_cells_that_are_not_above_chance():
    table = TABLES["cka"].copy()
    by_chance = (table["model"] == "vit") & (table["index"] == 3) & (table["other_index"] >= 20)
    table.loc[by_chance, "p"] = 0.05
    figure = drawn(cka=table)
    assert "not above chance" in legend_labels(figure)
    dots = [
        line.get_xydata() * LAST["vit"]
        for axes in maps_of(figure)
        for line in axes.lines
        if line.get_marker() == "o"
    ]
    expected = [[other, 3] for other in range(20, 25)]
    np.testing.assert_allclose(dots, [expected], atol=1e-9)
    assert "not above chance" not in legend_labels(drawn())


def lines_of(axes, last_across, last_up):
    """Return after which cut points lines across and up the map lie."""
    lines = [*map(Line2D.get_data, axes.lines)]
    across = [x[0] * last_across for x, _ in lines if x[0] == x[1]]
    return across, [y[0] * last_up for _, y in lines if y[0] == y[1]]


LAST = {model: len(kinds) - 1 for model, (kinds, *_) in MODELS.items()}
# After which cut points stages begin.
BEGIN = {"resnet": [0.5, 3.5, 7.5, 13.5], "vit": [0.5], "swin": [0.5, 4.5, 9.5, 22.5]}


def test_lines_are_where_a_stage_begins():
    for axes, (model, places) in zip(maps_of(drawn()), BEGIN.items(), strict=True):
        np.testing.assert_allclose(lines_of(axes, LAST[model], LAST[model]), [places, places])


def test_stages_are_named_above_their_middle():
    (names,) = maps_of(drawn())[0].child_axes
    assert [text.get_text() for text in names.get_xticklabels()] == ["S1", "S2", "S3", "S4"]
    np.testing.assert_allclose(names.get_xticks() * 16, [2, 5.5, 10.5, 15])


MARKED = {
    ("resnet", "msa"): [],
    ("resnet", "subsampling"): [4, 8, 14],
    ("vit", "msa"): range(1, 25, 2),
    ("vit", "subsampling"): [],
    ("swin", "msa"): [1, 3, 6, 8, *range(11, 23, 2), 24, 26],
    ("swin", "subsampling"): [5, 10, 23],
}


def check_marks(axes, model, along):
    """Check that the axis x or y has marks at the cells of the cut points of a model."""
    lines = [each for each in axes.collections if isinstance(each, LineCollection)]
    own = "xy".index(along)
    for kind in ("msa", "subsampling"):
        color = to_rgba(BAND_COLORS[kind])
        of_both = [each for each in lines if tuple(each.get_colors()[0]) == color]
        assert len(of_both) == 2
        ends = np.reshape(of_both[own].get_segments(), (-1, 2, 2))
        assert (ends[..., 1 - own] == 0).all()
        cells = [(index - 0.5, index + 0.5) for index in MARKED[model, kind]]
        found = ends[..., own] * LAST[model]
        np.testing.assert_allclose(found, np.reshape(cells, (-1, 2)), atol=1e-12)


@pytest.mark.parametrize("along", ["x", "y"])
def test_marks_are_at_msas_and_where_maps_shrink(along):
    for axes, model in zip(maps_of(drawn()), MODELS, strict=True):
        check_marks(axes, model, along)


def test_undefined_cells_are_left_open_and_named():
    table = TABLES["cka"].copy()
    undefined = (table["model"] == "vit") & ((table["index"] == 3) | (table["other_index"] == 3))
    table.loc[undefined, "cka"] = np.nan
    figure = drawn(cka=table)
    masks = [np.ma.getmaskarray(cells_of(axes).get_array()) for axes in maps_of(figure)]
    assert [mask.sum() for mask in masks] == [0, 2 * 25 - 1, 0]
    assert masks[1][3].all()
    assert masks[1][:, 3].all()
    assert legend_labels(figure) == ["undefined", "MSA", "subsampling"]


def test_a_table_without_some_pairs_is_refused():
    with pytest.raises(VitscopeError, match=r"cka table has 624 pairs .* 'vit', which has 25 cut"):
        drawn(VIT, cka=TABLES["cka"].query("model == 'vit'").iloc[1:])


def drawn_between(pair, **changed):
    tables = TABLES | {"cka_between": between(*pair).sample(frac=1)}
    return laid_out("cka_between", tables | changed, (RESNET, VIT, SWIN))


def test_the_first_network_is_across_and_the_second_up():
    (axes,) = maps_of(drawn_between(("resnet", "swin")))
    assert axes.get_xlabel() == "Normalized depth of ResNet-50"
    assert axes.get_ylabel() == "Normalized depth of Swin-Ti"
    check_cells(axes, between("resnet", "swin"), across="index", up="other_index")
    width, height = axes.get_window_extent().size
    assert width == pytest.approx(height, abs=1)


def test_each_axis_has_the_bands_of_its_own_network():
    (axes,) = maps_of(drawn_between(("resnet", "swin")))
    for model, along in (("resnet", "x"), ("swin", "y")):
        check_marks(axes, model, along)
    across, up = lines_of(axes, 16, 27)
    np.testing.assert_allclose(across, BEGIN["resnet"])
    np.testing.assert_allclose(up, BEGIN["swin"])


NETWORKS = pd.concat(
    between(*pair).assign(
        mutual=lambda rows: rows["cka"] / 3,
        mutual_p=0.005,
        mutual_images=200,
        images=240,
        batches=4,
    )
    for pair in (("resnet", "vit"), ("resnet", "swin"), ("vit", "swin"))
).sample(frac=1, random_state=1)


def at_end(column: str) -> dict[tuple[int, int], float]:
    """Values of the last cut points of each two networks, by their places in the matrix."""
    rows = NETWORKS.set_index(["model", "other_model", "index", "other_index"])[column]
    names = [*MODELS]
    pairs = [(0, 1), (0, 2), (1, 2)]
    ends = {
        (i, j): rows[tuple(names[n] for n in (i, j)) + tuple(LAST[names[n]] for n in (i, j))]
        for i, j in pairs
    }
    return ends | {(j, i): value for (i, j), value in ends.items()}


def drawn_matrices(**changed):
    tables = TABLES | {"cka_between": NETWORKS} | changed
    return laid_out("similarity_matrix", tables, (RESNET, VIT, SWIN))


@pytest.mark.parametrize(("place", "column"), [(0, "cka"), (1, "mutual")])
def test_a_matrix_has_the_last_blocks_of_each_two_networks(place, column):
    axes = maps_of(drawn_matrices())[place]
    cells, expected = cells_of(axes).get_array(), at_end(column)
    for row, other in np.ndindex(3, 3):
        if row == other:
            assert np.ma.getmaskarray(cells)[row, other]
        else:
            assert cells[row, other] == expected[row, other]
    written = {
        tuple(int(at) for at in text.get_position()): text.get_text()
        for text in axes.texts
        if text.get_text()[:2] in ("0.", "1.")
    }
    assert written == {(j, i): f"{value:.2f}" for (i, j), value in expected.items()}
    assert [text.get_text() for text in axes.get_xticklabels()] == [
        "ResNet-50",
        "ViT-Ti",
        "Swin-Ti",
    ]


def test_dots_and_hatches_of_a_matrix_are_at_its_cells():
    last = (NETWORKS["index"] == NETWORKS["model"].map(LAST)) & (NETWORKS["model"] == "vit")
    figure = drawn_matrices(
        cka_between=NETWORKS.assign(
            mutual_p=NETWORKS["mutual_p"].mask(last, 0.05), cka=NETWORKS["cka"].mask(last)
        )
    )
    whole, near = maps_of(figure)
    dots = [line.get_xydata().round().tolist() for line in near.lines]
    assert dots == [[[2, 1], [1, 2]]]
    assert sorted(patch.get_xy() for patch in whole.patches) == [(0.5, 1.5), (1.5, 0.5)]
    assert {"undefined", "not above chance"} == {*legend_labels(figure)}


def test_a_matrix_without_a_pair_is_refused():
    some = NETWORKS[NETWORKS["other_model"] != "vit"]
    assert refusal(drawn_matrices, cka_between=some) == (
        "The cka_between table lacks the last blocks of the models 'resnet' and 'vit': delete the "
        "tables and run again."
    )


def test_a_pair_that_was_not_measured_whole_is_refused():
    table = between("resnet", "vit").query("other_index < 7")
    assert refusal(drawn_between, ("resnet", "vit"), cka_between=table) == (
        "The cka_between table has 119 pairs of cut points of the models 'resnet' and 'vit', which "
        "have 17 and 25: delete the tables and run again."
    )
