"""Square panels without axes, which show pictures, and maps over pictures.

Each position of a map is drawn as a cell: a smoothed map would show spots that are not there.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from PIL import Image

from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import literal
from vitscope.drawing.looks import GRAY, MAP_COLORS, MOST_OPAQUE, text_scale
from vitscope.drawing.panels import axes_given_for_panels, page_width
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.images import Pixels, as_picture, as_pixels

# Inches.
_TITLE = 0.32  # the title above a group
_BAR = 0.5  # the colour bar of a group
_LARGEST = 1.5  # the largest panel
_LEAST = 0.4  # the smallest panel in a group beside another group
_LEAST_GROUP = 1.6  # the smallest group beside another group
_AROUND = 0.015  # the space around each panel
_LABELLED = 0.6  # the shortest colour bar with a label
_LETTER = 0.065  # the width of a letter of a colour bar's label
_CHARACTER = 0.045  # the width of a character above a picture
_LETTERS_OF_TITLE = 16  # per inch of a group
_LINE = 0.12  # a line of text above a row of panels
_STRIP = 0.5  # a colour bar below all groups, with its numbers and its label

# Where the colour bar below all groups is, in shares of its strip: left, bottom, width and height.
_BAR_BELOW = (0.3, 0.7, 0.4, 0.2)


def read_picture(picture: bytes) -> Pixels:
    """Return the pixels of a picture that a table holds as the bytes of a file."""
    return as_pixels(Image.open(io.BytesIO(picture)))


@dataclass(frozen=True)
class PictureGroups:
    """A figure of groups of panels; each group has a part of the figure, and a grid of axes."""

    figure: Figure
    parts: list[SubFigure]
    grids: list[Array]
    # The side of a panel in inches.
    side: float
    # The place of the colour bar below all groups, if they share one.
    strip: SubFigure | None = None

    def titles(self, titles: Sequence[str]) -> None:
        """Put a title above each group, where its panels begin."""
        starts, more = [part.bbox.x0 for part in self.parts], 0
        for part, title, start, after in zip(
            self.parts, titles, starts, [*starts[1:], 0], strict=True
        ):
            # The last group of a line has room up to the edge of the page.
            room = (after if after > start else self.figure.bbox.width) - start
            letters = int(_LETTERS_OF_TITLE * room / self.figure.dpi / text_scale())
            text = fill(title, letters, break_long_words=False)
            part.suptitle(text, x=0.002, ha="left")
            more = max(more, text.count("\n"))
        lines = starts.count(starts[0]) * more
        self.figure.set_figheight(self.figure.get_figheight() + 1.3 * _LINE * lines * text_scale())

    def bars(self, scales: Sequence[Normalize], label: str, unit: str = "") -> None:
        """Add a colour bar to the right of each group, with a label where there is room."""
        for part, grid, scale in zip(self.parts, self.grids, scales, strict=True):
            axes = [each for each in grid.ravel() if each in part.axes]
            colors = ScalarMappable(scale, MAP_COLORS)
            inches = len(grid) * self.side
            high = inches >= _LABELLED
            said = fill(label, int(inches / _LETTER / text_scale())) if high else ""
            shape = {"aspect": 12 * len(grid), "pad": 0.01}
            bar = color_bar(axes, colors, said, **shape)
            bar.locator = MaxNLocator(nbins=4 if high else 2)
            bar.formatter = StrMethodFormatter(f"{{x:g}}{unit}")
            bar.update_ticks()

    def bar(self, scale: Normalize, label: str, over: bool = False) -> None:
        """Add one colour bar below all groups; `over` says that maps lie over pictures."""
        assert self.strip is not None, "groups have a bar each"
        axes = self.strip.add_axes(_BAR_BELOW)
        colors = ScalarMappable(scale, colors_over() if over else MAP_COLORS)
        color_bar([axes], colors, label, cax=axes, orientation="horizontal", ticks=[0, 0.5, 1])
        axes.set_facecolor(GRAY)


def _arrange_groups(columns: Sequence[int], bar: float) -> tuple[list[list[int]], float]:
    """Return the groups in each line, from their numbers of `columns`, and the side of a panel."""

    def side_of_panels(line: Sequence[int]) -> float:
        room = page_width() - bar * len(line)
        return min(room / sum(columns[group] for group in line), _LARGEST)

    def arrange(most: int) -> tuple[list[list[int]], float]:
        side = side_of_panels([columns.index(max(columns))])
        lines: list[list[int]] = []
        for group, _ in enumerate(columns):
            beside = [*lines[-1], group] if lines else []
            smaller = min(side, side_of_panels(beside)) if beside else 0
            least = min(columns[each] for each in beside) * smaller + bar if beside else 0
            fits = smaller >= text_scale() * _LEAST and least >= text_scale() * _LEAST_GROUP
            if fits and len(beside) <= most:
                lines[-1], side = beside, smaller
            else:
                lines.append([group])
        return lines, side

    # Lines are about equally long.
    lines, _ = arrange(len(columns))
    return arrange(ceil(len(columns) / len(lines)))


def groups_of_pictures(
    shapes: Sequence[tuple[int, int]], text: float = 0, one_scale: bool = False
) -> PictureGroups:
    """Return groups of square panels without axes, side by side where they are narrow.

    `shapes` are the rows and columns of each group; `text` is the mean number of lines above a
    panel. Each group has room for a colour bar or, with `one_scale`, there is one bar below all.
    """
    if axes_given_for_panels(sum(rows * columns for rows, columns in shapes)) is not None:
        raise VitscopeError("This figure is laid out as a whole: leave ax out.")
    bar, below = (0, text_scale() * _STRIP) if one_scale else (text_scale() * _BAR, 0)
    lines, side = _arrange_groups([columns for _, columns in shapes], bar)
    row = side + text * text_scale() * _LINE
    most = [max(shapes[group][0] for group in line) for line in lines]
    heights = [rows * row + text_scale() * _TITLE for rows in most] + [below] * one_scale
    # The right edges of groups, in inches: the columns of the grid end there.
    ends = [np.cumsum([side * shapes[group][1] + bar for group in line]) for line in lines]
    edges = np.unique(np.concatenate([[0.0], *ends]).round(4))
    figure = Figure(figsize=(min(edges[-1], page_width()), sum(heights)))
    layout = figure.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        layout.set(w_pad=_AROUND, h_pad=_AROUND, wspace=0, hspace=0)
    ratios = {"height_ratios": heights, "width_ratios": np.diff(edges)}
    grid = figure.add_gridspec(len(heights), len(edges) - 1, **ratios)
    parts, grids = [], []
    for down, line in enumerate(lines):
        stops = np.searchsorted(edges, ends[down].round(4)).tolist()
        for group, start, stop in zip(line, [0, *stops], stops, strict=False):
            part = figure.add_subfigure(grid[down, start:stop])
            parts.append(part)
            grids.append(part.subplots(most[down], shapes[group][1], squeeze=False))
    for axes in (axes for each in grids for axes in each.ravel()):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    strip = figure.add_subfigure(grid[-1, :]) if one_scale else None
    return PictureGroups(figure, parts, grids, side, strip)


def colors_over() -> Colormap:
    """Return the colour map of maps over pictures: the higher a value, the more it covers."""
    shades = matplotlib.colormaps[MAP_COLORS](np.linspace(0, 1, 256))
    shades[:, 3] = np.linspace(0, MOST_OPAQUE, len(shades))
    return ListedColormap(shades)


def draw_picture(axes: Axes, pixels: Pixels) -> None:
    grey = pixels.shape[2] == 1
    # Fix the scale of grey: else matplotlib would stretch it to the values of the picture.
    how: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 255} if grey else {}
    axes.imshow(pixels[..., 0] if grey else pixels, **how)


def brightest_attention(weights: Array, mass: float) -> Array:
    """Return a mask of the brightest positions that together hold the share `mass` of a map."""
    order = np.argsort(-weights, kind="stable")
    held = np.cumsum(weights[order]) / weights.sum()
    mask = np.zeros(len(weights), bool)
    mask[order[: int(np.searchsorted(held, mass)) + 1]] = True
    return mask


def letters_above(inches: float) -> int:
    """Return how many letters a line above pictures has in so many inches."""
    return int(inches / _CHARACTER / text_scale())


def name_picture(axes: Axes, row: pd.Series, fits: float, cut: float) -> None:
    """Write the predicted class above a picture, and how sure it is.

    One line is at most `fits` inches wide. The upper of two lines, which may stand over a title
    beside it, is cut after `cut` inches.
    """
    if pd.notna(row["class_name"]):
        wide = letters_above(cut)
        name, said = row["class_name"], f"{100 * row['confidence']:.0f} %"
        if len(f"{name}, {said}") < letters_above(fits):
            text = f"{name}, {said}"
        else:
            short = name if len(name) <= wide else f"{name[: wide - 1].rstrip()}…"
            text = f"{short}\n{said}"
        axes.set_title(literal(text), fontsize="small", pad=2, x=0, ha="left")


def resize_bilinear(values: Array, size: tuple[int, int]) -> Array:
    """Resize a map to a width and a height, by bilinear interpolation between its cells."""
    plane = Image.fromarray(np.asarray(values, np.float32))
    return np.asarray(plane.resize(size, Image.Resampling.BILINEAR), np.float64)


def draw_product(axes: Axes, values: npt.ArrayLike, grid: tuple[int, int], pixels: Pixels) -> None:
    """Draw a picture with each pixel multiplied by the map's value there, which is from 0 to 1."""
    height, width = pixels.shape[:2]
    plane = Image.fromarray(np.reshape(values, grid).astype(np.float32))
    bright = np.asarray(plane.resize((width, height), Image.Resampling.NEAREST))[..., None]
    draw_picture(axes, (bright * pixels).astype(np.uint8))


def draw_map(
    axes: Axes,
    values: npt.ArrayLike,
    grid: tuple[int, int],
    scale: Normalize,
    size: tuple[int, int],
    over: Pixels | None = None,
) -> AxesImage:
    """Draw a map in the `size` of its picture (height, width), or over that picture in grey."""
    height, width = size
    if over is not None:
        # Make the picture grey: its colours would mix with those of the map.
        draw_picture(axes, as_pixels(as_picture(over).convert("L")))
    colors = MAP_COLORS if over is None else colors_over()
    how: dict[str, Any] = {"extent": (-0.5, width - 0.5, height - 0.5, -0.5), "norm": scale}
    return axes.imshow(np.reshape(values, grid), cmap=colors, interpolation="nearest", **how)
