"""Pictures, and maps that lie over them: panels without axes, as wide as they are high."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from PIL import Image

from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import literal
from vitscope.drawing.looks import MAP_COLORS, OVERLAY_ALPHA
from vitscope.drawing.panels import find_given_axes
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.pictures import as_pixels

# Inches: the width of a page, the title above a group, its colour bar, and the largest panel.
_WIDTH, _TITLE, _BAR, _LARGEST = 7.0, 0.28, 0.5, 1.5
# Inches that a colour bar has at least if a label stands beside it.
_LABELLED = 0.8
# Inches of a character above a picture.
_CHARACTER = 0.045
# Inches of a line of text above a row of panels.
_LINE = 0.12
# So many columns of panels leave room for another group.
MOST_BESIDE = 5


def read_picture(picture: bytes) -> npt.NDArray[np.uint8]:
    """Return the pixels of a picture in a table."""
    return as_pixels(Image.open(io.BytesIO(picture)))


@dataclass(frozen=True)
class Groups:
    """A figure of groups of panels: for each a part of the figure, and a grid of axes."""

    figure: Figure
    parts: list[SubFigure]
    grids: list[Array]
    # Of a panel, in inches.
    side: float

    def titles(self, titles: Sequence[str]) -> None:
        """Put a title above each group, where its panels begin."""
        for part, title in zip(self.parts, titles, strict=True):
            part.suptitle(title, x=0.01, ha="left")

    def bars(self, scales: Sequence[Normalize], label: str, unit: str = "") -> None:
        """Put the scale of the colours of each group to the right of it.

        Its numbers have their unit; what they are stands beside it, where there is room.
        """
        for part, grid, scale in zip(self.parts, self.grids, scales, strict=True):
            axes = [each for each in grid.ravel() if each in part.axes]
            colors = ScalarMappable(scale, MAP_COLORS)
            high = len(grid) * self.side >= _LABELLED
            shape = {"aspect": 12 * len(grid), "pad": 0.01}
            bar = color_bar(axes, colors, label if high else "", **shape)
            bar.locator = MaxNLocator(nbins=4 if high else 2)
            bar.formatter = StrMethodFormatter(f"{{x:g}}{unit}")
            bar.update_ticks()


def groups_of_panels(groups: int, rows: int, columns: int, lines: int = 0) -> Groups:
    """Return groups of square panels without axes, two side by side where they are narrow.

    There is room for `lines` of text above each panel.
    """
    if find_given_axes(groups * rows * columns) is not None:
        raise VitscopeError("This figure is laid out as a whole: leave ax out.")
    beside = 2 if groups > 1 and columns <= MOST_BESIDE else 1
    side = min(_WIDTH / beside - _BAR, _LARGEST * columns) / columns
    down = ceil(groups / beside)
    size = beside * (side * columns + _BAR), down * (rows * (side + lines * _LINE) + _TITLE)
    figure = Figure(figsize=size)
    parts = np.ravel(figure.subfigures(down, beside, squeeze=False)).tolist()[:groups]
    grids = [part.subplots(rows, columns, squeeze=False) for part in parts]
    for axes in np.ravel(grids):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return Groups(figure, parts, grids, side)


def draw_picture(axes: Axes, pixels: npt.NDArray[np.uint8]) -> None:
    """Draw a picture, in colour or grey."""
    grey = pixels.shape[2] == 1
    axes.imshow(pixels[..., 0] if grey else pixels, cmap="gray" if grey else None)


def name_picture(axes: Axes, row: pd.Series, side: float) -> None:
    """Write above a picture what a network takes it for, where it has a classifier.

    `side` is the size of the panel in inches: what is longer is cut, or has two lines.
    """
    if pd.notna(row["class_name"]):
        fit, name, share = int(side / _CHARACTER), row["class_name"], 100 * row["confidence"]
        short = name if len(name) <= fit else f"{name[: fit - 3].rstrip()}..."
        said = f"{share:.0f} %"
        between = ", " if len(f"{short}, {said}") < fit else "\n"
        axes.set_title(f"{literal(short)}{between}{said}", fontsize="small", pad=2)


def smooth(values: Array, size: tuple[int, int]) -> Array:
    """Return a map of another width and height, interpolated between its cells (bilinear)."""
    plane = Image.fromarray(np.asarray(values, np.float32))
    return np.asarray(plane.resize(size, Image.Resampling.BILINEAR), np.float64)


def draw_product(
    axes: Axes, values: npt.ArrayLike, grid: tuple[int, int], pixels: npt.NDArray[np.uint8]
) -> None:
    """Draw a picture that is as bright as a map of values from 0 to 1 is there."""
    height, width = pixels.shape[:2]
    bright = smooth(np.reshape(values, grid), (width, height))[..., None]
    draw_picture(axes, (bright * pixels).astype(np.uint8))


def draw_map(
    axes: Axes,
    values: npt.ArrayLike,
    grid: tuple[int, int],
    scale: Normalize,
    size: tuple[int, int],
    over: npt.NDArray[np.uint8] | None = None,
) -> AxesImage:
    """Draw a map as large as its picture, of `size` pixels, or over that picture."""
    height, width = size
    if over is not None:
        draw_picture(axes, over)
    return axes.imshow(
        np.reshape(values, grid),
        cmap=MAP_COLORS,
        norm=scale,
        extent=(-0.5, width - 0.5, height - 0.5, -0.5),
        interpolation="bilinear",
        alpha=None if over is None else OVERLAY_ALPHA,
    )
