from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.helpers.drawing import SWIN, VIT, laid_out
from tests.helpers.pictures import (
    SIDE,
    bars_of,
    grey_of,
    groups_of,
    picture,
    pixels_of,
    square_panels,
)
from tests.helpers.shown import flaws
from vitscope.drawing.figure import Member
from vitscope.drawing.pictures import brightest_attention

HEADS = {"vit": 3, "swin": 2}
QUERIES = [(2.0, 2.0), (2.0, 6.0), (6.0, 3.0)]


def map_of(model: str, image: int, number: int) -> np.ndarray:
    """Return a map, of 3 x 4 positions or 2 x 2, brighter for later ones."""
    generator = np.random.default_rng([len(model), image, number])
    return generator.uniform(0, 0.1, 12 if model == "vit" else 4) * (1 + number)


def maps(heads: dict[str, int] = HEADS, of: str = "class token") -> pd.DataFrame:
    """Return maps of all heads, and of queries of the second head, in no order but of queries."""
    rows = []
    for model, count in heads.items():
        for image in (7, 2):
            fixed = {"model": model, "name": f"{model}.attn", "attention": 3, "image": image}
            fixed |= {"height": 3, "width": 4} if model == "vit" else {"height": 2, "width": 2}
            fixed |= {"picture": picture(image), "mass": None}
            fixed |= {"class_name": "toucan", "confidence": 0.98}
            place = {"query_row": 4.0, "query_column": 6.0} if of == "query" else {}
            for head in reversed(range(count)):
                weights = map_of(model, image, head)
                rows.append(
                    {**fixed, **place, "shows": "heads", "of": of, "head": head}
                    | {"weights": weights}
                )
            for number, (row, column) in enumerate(QUERIES):
                weights = map_of(model, image, 10 + number)
                asked = {"shows": "queries", "of": "query", "head": 1, "weights": weights}
                rows.append({**fixed, **asked, "query_row": row, "query_column": column})
    return pd.DataFrame(rows)


def lines_of(panels: Sequence[Axes], columns: int) -> list[Sequence[Axes]]:
    return [panels[first : first + columns] for first in range(0, len(panels), columns)]


def shows(axes: Axes, expected: np.ndarray) -> bool:
    """Tell whether a panel has this map, in percent, as large as the picture."""
    (image,) = axes.images
    # Between positions nothing is known: a map of 2 x 2 has no round spots.
    assert image.get_interpolation() == "nearest"
    np.testing.assert_allclose(image.get_array().ravel(), 100 * expected)
    return [*image.get_extent()] == [-0.5, SIDE - 0.5, SIDE - 0.5, -0.5]


def test_every_head_has_a_map():
    table = maps()
    figure: Figure = laid_out("attention_heads", {"attention_maps": table}, (VIT, SWIN))
    for (title, panels), member in zip(groups_of(figure), (VIT, SWIN), strict=True):
        assert title == f"{member.label}: {member.model}.attn (class token)"
        heads = HEADS[member.model]
        # What a model with fewer heads has no use for is gone.
        assert len(panels) == 2 * (1 + heads)
        for line, image in zip(lines_of(panels, 1 + heads), (2, 7), strict=True):
            np.testing.assert_array_equal(line[0].images[0].get_array(), pixels_of(image))
            for head, axes in enumerate(line[1:]):
                assert shows(axes, map_of(member.model, image, head))
                assert axes.get_title() == f"head {head}"
            assert not line[0].lines
        # One scale for all maps of a model, from nothing to the largest.
        of_model = table[(table["model"] == member.model) & (table["shows"] == "heads")]
        largest = 100 * max(map(max, of_model["weights"]))
        scales = {
            axes.images[0].get_clim() for line in lines_of(panels, 1 + heads) for axes in line[1:]
        }
        assert scales == {(0, largest)}


def test_heads_lie_over_the_image_on_scales_of_their_own():
    table = maps()
    drawn = {"attention_maps": table}
    figure: Figure = laid_out("attention_heads", drawn, (VIT, SWIN), over=True, own_scales=True)
    groups, bars = groups_of(figure), bars_of(figure)
    for (_, panels), bar, member in zip(groups, bars, (VIT, SWIN), strict=True):
        heads = HEADS[member.model]
        for line, image in zip(lines_of(panels, 1 + heads), (2, 7), strict=True):
            assert line[0].get_title() == "toucan, 98 %"
            for head, axes in enumerate(line[1:]):
                below, over = axes.images
                np.testing.assert_array_equal(below.get_array(), grey_of(image))
                expected = map_of(member.model, image, head)
                expected /= expected.max()
                np.testing.assert_allclose(over.get_array().ravel(), expected)
                assert over.get_clim() == (0, 1)
                assert over.get_interpolation() == "nearest"
        assert bar.get_ylabel().split() in (["Attention", "over", "its", "largest"], [])
    assert not flaws(figure)


def test_the_label_of_a_bar_is_whole_where_heads_have_one_row():
    table = maps({"vit": 6})
    one = {"attention_maps": table[table["image"] == 2]}
    figure = laid_out("attention_heads", one, (VIT,), own_scales=True)
    (bar,) = bars_of(figure)
    assert bar.get_ylabel().split() == ["Attention", "over", "its", "largest"]
    label, panel = bar.yaxis.label.get_window_extent(), bar.get_window_extent()
    assert label.height <= panel.height
    assert not flaws(figure)


def test_the_query_of_all_heads_is_marked():
    table = maps(of="query")
    figure: Figure = laid_out("attention_heads", {"attention_maps": table}, (VIT,))
    ((title, panels),) = groups_of(figure)
    assert title == "ViT-Ti: vit.attn (query)"
    for line in lines_of(panels, 4):
        (cross,) = line[0].lines
        # A place in pixels from the edge, where pixels are around whole numbers.
        assert cross.get_xydata().tolist() == [[5.5, 3.5]]
        assert not any(axes.lines for axes in line[1:])


def test_many_heads_stand_in_lines():
    heads = 12
    table = maps({"vit": heads})
    figure: Figure = laid_out("attention_heads", {"attention_maps": table}, (VIT,))
    ((_, panels),) = groups_of(figure)
    drawn = [axes for axes in panels if axes.get_title().startswith("head")]
    assert [axes.get_title() for axes in drawn] == [f"head {head}" for head in range(heads)] * 2
    expected = [(image, head) for image in (2, 7) for head in range(heads)]
    assert all(
        shows(axes, map_of("vit", *each)) for axes, each in zip(drawn, expected, strict=True)
    )
    assert figure.get_figwidth() <= 7
    square_panels(figure)
    assert not flaws(figure)


def test_groups_stand_side_by_side_where_there_is_room():
    heads = {"vit": 3, "pit": 4, "swin": 9}
    members = [VIT, Member("pit", "PiT", "pit"), SWIN]
    figure: Figure = laid_out("attention_heads", {"attention_maps": maps(heads)}, members)
    # No part is wider than its heads need it.
    boxes = [part.bbox.bounds for part in figure.subfigs]
    (left, up, wide, _), (left_1, up_1, wide_1, _), (left_2, up_2, _, _) = boxes
    np.testing.assert_allclose((left, left_1, left_2), (0, wide, 0), atol=1e-6)
    assert up_2 < up == pytest.approx(up_1)
    assert wide < wide_1
    assert figure.get_figwidth() <= 5.5
    square_panels(figure)
    assert not flaws(figure)


def test_what_queries_look_at():
    table = maps()
    figure: Figure = laid_out("attention_query", {"attention_maps": table}, (VIT, SWIN))
    for (title, panels), member in zip(groups_of(figure), (VIT, SWIN), strict=True):
        assert title == f"{member.label}: {member.model}.attn, head 1"
        assert len(panels) == 2 * 4
        # There is room beside a name, where no map has a title.
        assert panels[0].get_title() == "toucan, 98 %"
        for line, image in zip(lines_of(panels, 4), (2, 7), strict=True):
            np.testing.assert_array_equal(line[0].images[0].get_array(), pixels_of(image))
            crosses = [cross.get_xydata().tolist() for cross in line[0].lines]
            assert crosses == [[[column - 0.5, row - 0.5]] for row, column in QUERIES]
            colors = [cross.get_color() for cross in line[0].lines]
            for number, axes in enumerate(line[1:]):
                assert shows(axes, map_of(member.model, image, 10 + number))
                # The same cross, in the same colour.
                (cross,) = axes.lines
                assert cross.get_xydata().tolist() == crosses[number]
                assert cross.get_color() == colors[number]


def test_the_mask_by_hand() -> None:
    weights = np.array([0.05, 0.3, 0.1, 0.25, 0.3])
    # The brightest: 0.3, 0.6 with the other, 0.85.
    assert brightest_attention(weights, 0.2).tolist() == [False, True, False, False, False]
    assert brightest_attention(weights, 0.59).tolist() == [False, True, False, False, True]
    assert brightest_attention(weights, 0.61).tolist() == [False, True, False, True, True]
    # Of what is shown, which need not be all that a query has.
    assert brightest_attention(weights / 7, 0.61).tolist() == [False, True, False, True, True]
    assert brightest_attention(np.array([1.0, 0, 0]), 0.6).tolist() == [True, False, False]


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_the_mask_is_the_fewest_that_hold_the_mass(values: list[float], mass: float) -> None:
    weights = np.array(values)
    mask = brightest_attention(weights, mass)
    held = weights[mask].sum() / weights.sum()
    assert held >= mass - 1e-12
    assert held - weights[mask].min() / weights.sum() < mass + 1e-12
    assert weights[mask].min() >= weights[~mask].max(initial=0)


def test_a_line_is_around_what_holds_the_mass():
    table = maps({"vit": 1}).assign(mass=0.6)
    square = np.zeros(12)
    square[[5, 6]] = 0.45, 0.35
    square[0] = 0.2
    table["weights"] = [square] * len(table)
    figure = laid_out("attention_heads", {"attention_maps": table}, (VIT,))
    ((_, panels),) = groups_of(figure)
    line = panels[1].collections[0]
    vertices = np.concatenate([path.vertices for path in line.get_paths()])
    # Of 3 x 4 positions over 8 x 8 pixels: the middle row, the second and the third column.
    step = 0.5 * 8 / (3 * 8)
    left, right, top, bottom = 2 - 0.5, 6 - 0.5, 8 / 3 - 0.5, 16 / 3 - 0.5
    np.testing.assert_allclose(vertices[:, 0].min(), left, atol=step)
    np.testing.assert_allclose(vertices[:, 0].max(), right, atol=step)
    np.testing.assert_allclose(vertices[:, 1].min(), top, atol=step)
    np.testing.assert_allclose(vertices[:, 1].max(), bottom, atol=step)
    without = laid_out("attention_heads", {"attention_maps": table.assign(mass=None)}, (VIT,))
    assert not groups_of(without)[0][1][1].collections
