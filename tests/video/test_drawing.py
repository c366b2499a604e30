"""Where panels stand in a frame, and that maps have the colours of what they show."""

import numpy as np
import pytest
import torch
from matplotlib import colormaps

from tests.video.pictures import frames
from vitscope.video.drawing import Scale, Sheet, colored, crossed, over, smooth, steady_colors

SCALE = Scale("0", "7.25 or more", "attention (%)")


def sheet(size: int = 32, panels: int = 4, title: str = "ViT: blocks.3 (class token)") -> Sheet:
    return Sheet(size, [f"head {number}" for number in range(panels)], title, SCALE)


def test_maps_lie_between_their_cells_as_torch_has_them() -> None:
    chance = np.random.default_rng(0)
    for shape in ((8, 8), (7, 7), (4, 6), (1, 1)):
        values = chance.random(shape)
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(values)[None, None], (160, 160), mode="bilinear", align_corners=False
        )[0, 0].numpy()
        np.testing.assert_allclose(smooth(values, 160), expected, atol=2e-6)


def test_colours_are_those_of_matplotlib_and_end_with_the_last() -> None:
    values = np.array([[0, 0.25, 0.5, 1, 1.7]])
    expected = 255 * np.array([colormaps["inferno"](each)[:3] for each in values[0]])
    np.testing.assert_allclose(colored(values)[0], expected, atol=1)


@pytest.mark.parametrize(("size", "side"), [(32, 160), (16, 160), (100, 200), (224, 224)])
def test_pixels_are_squares_of_whole_numbers(size: int, side: int) -> None:
    drawn = sheet(size)
    (picture,) = frames(1, (size, size))
    large = drawn.enlarged(picture)
    assert drawn.side == side
    assert large.shape == (side, side, 3)
    times = side // size
    np.testing.assert_array_equal(large[::times, ::times], picture)
    np.testing.assert_array_equal(large[times - 1 :: times, times - 1 :: times], picture)


def test_a_grey_picture_has_three_channels_when_it_is_shown() -> None:
    grey = frames(1, (32, 32))[0][..., :1]
    large = sheet().enlarged(grey)
    np.testing.assert_array_equal(large[::5, ::5], np.repeat(grey, 3, axis=2))


@pytest.mark.parametrize("panels", [2, 3, 5, 6, 13, 17])
@pytest.mark.parametrize("size", [16, 224])
def test_panels_are_apart_and_within_the_frame(panels: int, size: int) -> None:
    drawn = sheet(size, panels)
    width, height = drawn.size
    assert (width % 2, height % 2) == (0, 0)
    shown = np.zeros((height, width), int)
    for number in range(panels):
        left, top = drawn.corner(number)
        shown[top : top + drawn.side, left : left + drawn.side] += 1
    assert shown.max() == 1
    assert shown.sum() == panels * drawn.side**2
    # In the order in which one reads, with room for text above and below.
    corners = [drawn.corner(number)[::-1] for number in range(panels)]
    assert corners == sorted(corners)
    assert min(corners)[0] > 12
    assert max(corners)[0] + drawn.side < height - 12


def test_a_frame_has_its_panels_and_all_else_stays(tmp_path) -> None:
    drawn = sheet()
    black, white = (np.full((drawn.side, drawn.side, 3), value, np.uint8) for value in (0, 255))
    one, other = drawn.frame([black] * 4), drawn.frame([white] * 4)
    changed = np.zeros(one.shape, bool)
    for number in range(4):
        left, top = drawn.corner(number)
        changed[top : top + drawn.side, left : left + drawn.side] = True
    assert (one[changed] == 0).all()
    assert (other[changed] == 255).all()
    np.testing.assert_array_equal(one[~changed], other[~changed])


def test_the_scale_goes_through_all_colours() -> None:
    drawn = sheet()
    page = drawn.frame([np.full((drawn.side, drawn.side, 3), 255, np.uint8)] * 4)
    colors = colored(np.linspace(0, 1, 256))
    below = page[drawn.corner(3)[1] + drawn.side :]
    there = {tuple(color) for row in below.tolist() for color in row}
    shown = [tuple(color) in there for color in colors.tolist()]
    assert shown[0]
    assert shown[-1]
    assert np.mean(shown) > 0.4


def test_a_text_without_room_is_cut_short() -> None:
    long, short = sheet(title="x" * 500), sheet(title="x")
    assert long.size == short.size
    pages = [each.frame([]) for each in (long, short)]
    right = pages[0][:20, -4:]
    assert (right == 255).all()
    assert (pages[0] < 128).sum() > (pages[1] < 128).sum()


def test_a_map_over_a_picture_shows_both() -> None:
    map_, picture = np.full((2, 2, 3), 200, np.uint8), np.full((2, 2, 3), 100, np.uint8)
    assert over(map_, picture).tolist() == np.full((2, 2, 3), 155).tolist()


def test_a_cross_marks_a_query() -> None:
    picture = np.full((160, 160, 3), 90, np.uint8)
    marked = crossed(picture, (0.25, 0.75))
    rows, columns = np.nonzero((marked != 90).any(-1))
    assert (rows.mean(), columns.mean()) == (pytest.approx(40, abs=1), pytest.approx(120, abs=1))
    assert {0, 255} <= {*marked.ravel().tolist()}


def test_steady_colours_leave_room_for_others() -> None:
    steady = steady_colors()
    assert len(steady) < 128
    assert {(0, 0, 0), (255, 255, 255)} <= {tuple(color) for color in steady.tolist()}
