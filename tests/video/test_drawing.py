import numpy as np
import pytest
import torch
from matplotlib import colormaps
from PIL import Image

from tests.video.pictures import frames
from vitscope.drawing.pictures import resize_bilinear
from vitscope.image_size import ImageSize
from vitscope.video.sheet import Scale, Sheet, map_colors


def sheet(size: ImageSize = 32, panels: int = 4) -> Sheet:
    scale = Scale("0", "7.25 or more", "attention (%)")
    titles = [f"head {number}" for number in range(panels)]
    return Sheet(size, titles, "ViT: blocks.3 (class token)", scale)


@pytest.mark.parametrize("shape", [(8, 8), (7, 7), (4, 6), (1, 1)])
@pytest.mark.parametrize("size", [(160, 160), (240, 160)])
def test_maps_lie_between_their_cells_as_torch_has_them(
    shape: tuple[int, int], size: tuple[int, int]
) -> None:
    values = np.random.default_rng(0).random(shape)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(values)[None, None], size[::-1], mode="bilinear", align_corners=False
    )[0, 0].numpy()
    np.testing.assert_allclose(resize_bilinear(values, size), expected, atol=2e-6)


def test_colours_are_those_of_matplotlib_and_end_with_the_last() -> None:
    values = np.array([[0, 0.25, 0.5, 1, 1.7]])
    expected = 255 * np.array([colormaps["inferno"](each)[:3] for each in values[0]])
    np.testing.assert_allclose(np.asarray(map_colors(values))[0], expected, atol=1)


@pytest.mark.parametrize(
    ("size", "times"),
    [((32, 32), 5), ((16, 16), 10), ((100, 100), 2), ((224, 224), 1), ((64, 96), 2), ((96, 64), 3)],
)
def test_pixels_are_squares_in_colour(size: tuple[int, int], times: int) -> None:
    height, width = size
    (picture,) = frames(1, size[::-1])
    drawn = sheet(size)
    for pixels in (picture, picture[..., 0]):
        large = np.asarray(drawn.enlarge(Image.fromarray(pixels)))
        assert large.shape == (height * times, width * times, 3)
        squares = large.reshape(height, times, width, times, 3)
        expected = np.atleast_3d(pixels)[:, None, :, None]
        np.testing.assert_array_equal(squares, np.broadcast_to(expected, squares.shape))


@pytest.mark.parametrize("panels", [2, 5, 17])
@pytest.mark.parametrize("size", [16, 224, (64, 96), (96, 64)])
def test_panels_are_apart_and_all_else_stays(panels: int, size: ImageSize) -> None:
    drawn = sheet(size, panels)
    width, height = drawn.size
    assert (width % 2, height % 2) == (0, 0)
    there = np.zeros((height, width), int)
    for number in range(panels):
        left, top = drawn.corner(number)
        there[top : top + drawn.panel[1], left : left + drawn.panel[0]] += 1
    assert there.max() == 1
    assert there.sum() == panels * np.prod(drawn.panel)
    # In the order in which one reads, with room for text above and below.
    corners = [drawn.corner(number)[::-1] for number in range(panels)]
    assert corners == sorted(corners)
    assert min(corners)[0] > 12
    assert max(corners)[0] + drawn.panel[1] < height - 12
    flat = [Image.new("RGB", drawn.panel, color) for color in ("black", "white")]
    one, other = (np.asarray(drawn.fill([each] * panels)) for each in flat)
    assert (one[there == 1] == 0).all()
    assert (other[there == 1] == 255).all()
    np.testing.assert_array_equal(one[there == 0], other[there == 0])
