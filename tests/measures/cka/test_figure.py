"""The CKA figure shows its tables, cell by cell, and marks where the block table says."""

from base64 import b64decode
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from PIL import Image

from tests.helpers.drawing import draw_kind
from tests.helpers.shown import legend_labels
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import BAND_COLORS
from vitscope.drawing.saving import save, style
from vitscope.errors import VitscopeError

RESNET = Member("resnet", "ResNet-50", "resnet")
VIT = Member("vit", "ViT-Ti", "vit")
SWIN = Member("swin", "Swin-Ti", "swin")
MODELS = {
    "resnet": (
        ["stem"] + ["conv"] * 16,
        [0] + [1] * 3 + [2] * 4 + [3] * 6 + [4] * 3,
        [32] * 4 + [16] * 4 + [8] * 6 + [4] * 3,
    ),
    "vit": (["stem"] + ["msa", "mlp"] * 12, [0] + [1] * 24, [16] * 25),
    "swin": (
        ["stem"] + ["msa", "mlp"] + ["pool", "msa", "mlp"] * 2,
        [0] * 1 + [1] * 2 + [2] * 3 + [3] * 3,
        [16] * 3 + [8] * 3 + [4] * 3,
    ),
}


def block_table(model: str) -> pd.DataFrame:
    kinds, stages, sizes = MODELS[model]
    count = len(kinds)
    return pd.DataFrame(
        {
            "model": model,
            "index": np.arange(count),
            "name": [f"block{index}" for index in range(count)],
            "kind": kinds,
            "stage": stages,
            "depth": np.arange(count) / (count - 1),
            "channels": 64,
            "height": sizes,
            "width": sizes,
            "parameters": 10,
        }
    )


def cka_table(model: str) -> pd.DataFrame:
    """Values that no two pairs share."""
    count = len(MODELS[model][0])
    index, other = np.indices((count, count)).reshape(2, -1)
    value = np.random.default_rng(count).uniform(0.02, 1, count**2)
    return pd.DataFrame(
        {
            "model": model,
            "index": index,
            "other_index": other,
            "images": 256,
            "batches": 4,
            "hsic": 1.0,
            "cka": value,
        }
    )


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    """Both tables of all models, in no particular order."""
    return {
        "cka": pd.concat(map(cka_table, MODELS)).sample(frac=1, random_state=0),
        "blocks": pd.concat(map(block_table, MODELS)).sample(frac=1, random_state=0),
    }


@pytest.fixture
def drawn(tables, style_file):
    def draw_it(*members, **changed):
        with style(style_file):
            return draw_kind("cka", tables | changed, members or (RESNET, VIT, SWIN), {})

    return draw_it


def maps_of(figure):
    """The panels, without the colour bar."""
    return [axes for axes in figure.axes if axes.images]


def cells_of(axes) -> AxesImage:
    (cells,) = axes.images
    return cells


def marks_of(axes, kind, along):
    """Where the marks of a kind of cut point begin and end, along the axis x or y."""
    color = to_rgba(BAND_COLORS[kind])
    across, up = (
        lines
        for lines in axes.collections
        if isinstance(lines, LineCollection) and tuple(lines.get_colors()[0]) == color
    )
    drawn, own = (across, 0) if along == "x" else (up, 1)
    ends = [segment[:, own] for segment in drawn.get_segments()]
    assert all((segment[:, 1 - own] == 0).all() for segment in drawn.get_segments())
    return np.array(ends).reshape(-1, 2)


def test_cells_are_the_table_with_the_origin_at_the_lower_left(drawn, tables):
    figure = drawn()
    assert [axes.get_title() for axes in maps_of(figure)] == ["ResNet-50", "ViT-Ti", "Swin-Ti"]
    for axes, model in zip(maps_of(figure), MODELS, strict=True):
        rows = tables["cka"][tables["cka"]["model"] == model]
        expected = rows.pivot(index="index", columns="other_index", values="cka").to_numpy()
        cells = cells_of(axes)
        np.testing.assert_array_equal(cells.get_array(), expected)
        # The middle of each cell is at the depths of its two cut points.
        depth = np.linspace(0, 1, len(expected))
        left, right, bottom, top = cells.get_extent()
        for low, high in ((left, right), (bottom, top)):
            side = (high - low) / len(expected)
            np.testing.assert_allclose(
                low + side * (np.arange(len(expected)) + 0.5), depth, atol=1e-12
            )
        assert cells.origin == "lower"
        assert axes.get_xlim() == (left, right)
        assert axes.get_ylim() == (bottom, top)


def test_each_map_is_one_picture_so_that_no_viewer_shows_lines_between_cells(
    drawn, style_file, tmp_path
):
    figure = drawn()
    for path in (tmp_path / "map.svg", tmp_path / "map.pdf"):
        with style(style_file):
            save(figure, path, "map", {})
    root = ElementTree.parse(tmp_path / "map.svg").getroot()
    pictures = list(root.iter("{http://www.w3.org/2000/svg}image"))
    # The scale of the colours is one too.
    assert len(pictures) == len(MODELS) + 1
    # As fine as the page is printed: viewers would blur a picture of a pixel per cell.
    for picture in pictures:
        data = picture.get("{http://www.w3.org/1999/xlink}href").split(",")[1]
        with Image.open(BytesIO(b64decode(data))) as pixels:
            assert pixels.height > 4 * float(picture.get("height"))
    assert {cells_of(axes).get_interpolation() for axes in maps_of(figure)} == {"nearest"}
    assert (tmp_path / "map.pdf").read_bytes().count(b"/Subtype /Image") > len(MODELS)


def test_all_maps_share_the_colours_from_0_to_1_and_are_square(drawn):
    figure = drawn()
    looks = [(cells_of(axes).cmap.name, cells_of(axes).get_clim()) for axes in maps_of(figure)]
    assert set(looks) == {("magma", (0, 1))}
    (bar,) = (axes for axes in figure.axes if axes not in maps_of(figure))
    assert bar.get_ylabel() == "CKA"
    assert bar.get_ylim() == (0, 1)
    sides = {round(side) for axes in maps_of(figure) for side in axes.get_window_extent().size}
    assert max(sides) - min(sides) <= 1


def test_values_below_0_are_within_the_colours(drawn, tables):
    table = tables["cka"].copy()
    table.loc[table["cka"] < 0.1, "cka"] *= -1
    table.iloc[5, table.columns.get_loc("cka")] = -0.13
    for axes in maps_of(drawn(cka=table)):
        assert cells_of(axes).get_clim() == (-0.2, 1)


def test_lines_are_where_a_stage_begins(drawn):
    expected = {"resnet": [0.5, 3.5, 7.5, 13.5], "vit": [0.5], "swin": [0.5, 2.5, 5.5]}
    for axes, (model, places) in zip(maps_of(drawn()), expected.items(), strict=True):
        last = len(MODELS[model][0]) - 1
        across = [x[0] * last for x, _ in map(Line2D.get_data, axes.lines) if x[0] == x[1]]
        up = [y[0] * last for _, y in map(Line2D.get_data, axes.lines) if y[0] == y[1]]
        np.testing.assert_allclose(across, places)
        np.testing.assert_allclose(up, places)


def test_stages_are_named_above_their_middle(drawn):
    resnet, vit, _ = maps_of(drawn())
    (names,) = resnet.child_axes
    assert [text.get_text() for text in names.get_xticklabels()] == ["S1", "S2", "S3", "S4"]
    np.testing.assert_allclose(names.get_xticks() * 16, [2, 5.5, 10.5, 15])
    (names,) = vit.child_axes
    assert [text.get_text() for text in names.get_xticklabels()] == ["S1"]


@pytest.mark.parametrize("along", ["x", "y"])
def test_marks_are_at_msas_and_where_maps_shrink(drawn, along):
    expected = {
        ("resnet", "msa"): [],
        ("resnet", "subsampling"): [4, 8, 14],
        ("vit", "msa"): range(1, 25, 2),
        ("vit", "subsampling"): [],
        ("swin", "msa"): [1, 4, 7],
        ("swin", "subsampling"): [3, 6],
    }
    axes_of = dict(zip(MODELS, maps_of(drawn()), strict=True))
    for (model, kind), cut_points in expected.items():
        last = len(MODELS[model][0]) - 1
        cells = np.array([(index - 0.5, index + 0.5) for index in cut_points]).reshape(-1, 2)
        marks = marks_of(axes_of[model], kind, along)
        np.testing.assert_allclose(marks * last, cells, atol=1e-12)


def test_undefined_cells_are_left_open_and_named(drawn, tables):
    table = tables["cka"].copy()
    undefined = (table["model"] == "vit") & ((table["index"] == 3) | (table["other_index"] == 3))
    table.loc[undefined, "cka"] = np.nan
    figure = drawn(cka=table)
    masks = [np.ma.getmaskarray(cells_of(axes).get_array()) for axes in maps_of(figure)]
    assert [mask.sum() for mask in masks] == [0, 2 * 25 - 1, 0]
    assert masks[1][3].all()
    assert masks[1][:, 3].all()
    assert [bool(axes.patch.get_hatch()) for axes in maps_of(figure)] == [False, True, False]
    assert legend_labels(figure) == ["undefined", "MSA", "subsampling"]


def test_a_model_without_any_value_is_drawn(drawn, tables):
    figure = drawn(VIT, cka=tables["cka"].assign(cka=np.nan))
    assert np.ma.getmaskarray(cells_of(maps_of(figure)[0]).get_array()).all()
    assert cells_of(maps_of(figure)[0]).get_clim() == (0, 1)


def test_a_single_cut_point_is_one_cell(drawn, tables):
    blocks = tables["blocks"].query("model == 'vit' and index == 0").assign(stage=1)
    table = tables["cka"].query("model == 'vit' and index == 0 and other_index == 0")
    (axes,) = maps_of(drawn(VIT, blocks=blocks, cka=table))
    assert cells_of(axes).get_array().shape == (1, 1)


def test_a_table_without_some_pairs_is_refused(drawn, tables):
    with pytest.raises(VitscopeError, match=r"cka table has 624 pairs .* 'vit', which has 25 cut"):
        drawn(VIT, cka=tables["cka"].query("model == 'vit'").iloc[1:])
