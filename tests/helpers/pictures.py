import io

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from vitscope.files.images import as_picture

SIDE = 8


def pixels_of(image: int, grey: bool = False) -> npt.NDArray[np.uint8]:
    """Return the pixels of an image of 8 x 8 that is drawn by its number."""
    shape = (SIDE, SIDE, 1 if grey else 3)
    return np.random.default_rng(image).integers(0, 256, shape, np.uint8)


def picture(image: int, grey: bool = False) -> bytes:
    """Return that image as a table holds it."""
    return as_png(pixels_of(image, grey))


def as_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return pixels (H, W, C) as a PNG file."""
    written = io.BytesIO()
    as_picture(pixels).save(written, "PNG")
    return written.getvalue()


def grey_of(image: int) -> npt.NDArray[np.uint8]:
    """Return that image without its colours."""
    return np.asarray(Image.fromarray(pixels_of(image)).convert("L"))


def groups_of(figure: Figure) -> list[tuple[str, list[Axes]]]:
    """Return the groups of a figure: the title of each, and its panels row by row."""
    parts = [part for part in figure.subfigs if part.get_suptitle() and part.axes]
    return [
        (part.get_suptitle(), [each for each in part.axes if not _is_bar(each)]) for part in parts
    ]


def bars_of(figure: Figure) -> list[Axes]:
    return [each for part in figure.subfigs for each in part.axes if _is_bar(each)]


def _is_bar(axes: Axes) -> bool:
    return hasattr(axes, "_colorbar")


def square_panels(figure: Figure) -> None:
    """Check that no picture is squeezed, and that all are as large."""
    sizes = set()
    for _, panels in groups_of(figure):
        for axes in panels:
            if axes.images:
                assert axes.get_aspect() == 1
                box = axes.get_window_extent()
                assert abs(box.width - box.height) < 0.01 * box.width
                sizes.add(round(box.width, 1))
    assert sizes
    assert max(sizes) - min(sizes) < 0.02 * max(sizes), sizes
