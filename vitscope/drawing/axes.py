"""Scales, labels of ticks, and colour bars."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from vitscope.drawing.looks import INTERVAL_WIDTH, depth_colors


def tick_locator() -> MaxNLocator:
    """Return the default tick locator of y axes."""
    return MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=4)


def mark_empty_axes(axes: Axes) -> None:
    """Write "no values" into axes that show neither values nor another text."""
    # Remove lines without a finite point: they are not clipped, so the layout would make room for
    # them at a corner of the figure.
    for line in [*axes.lines]:
        if not np.isfinite(np.asarray(line.get_xydata(), float)).all(axis=1).any():
            line.remove()
    # Depth bands, which lie behind curves, and lines along an axis are not values.
    patches = [each for each in axes.patches if each.get_zorder() > 0]
    lines = [each for each in axes.lines if each.get_transform() == axes.transData]
    if axes.axison and not [*lines, *patches, *axes.collections, *axes.images, *axes.texts]:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center")


def share_limits(panels: Sequence[Axes]) -> None:
    """Give panels the y limits that hold those of all."""
    if panels:
        lows, highs = zip(*(axes.get_ylim() for axes in panels), strict=True)
        for axes in panels:
            axes.set_ylim(min(lows), max(highs))


def begin_at_zero(*several: Axes) -> None:
    """Let y axes begin at zero; axes that later become logarithmic begin at their lowest value."""
    for axes in several:
        axes.set_ylim(bottom=0, auto=True)


def in_percent(*several: Axes) -> None:
    for axes in several:
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))


def label_decades(axes: Axes) -> None:
    """Label powers of ten on a logarithmic y axis with plain numbers.

    If the axis spans less than two decades, also label 2 and 5 times each power; if less than one,
    3 and 7 times, too.
    """
    low, high = axes.get_ylim()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}" if high < 100 * low else NullFormatter())
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5) if high >= 10 * low else (2, 3, 5, 7)))


def draw_points_with_intervals(
    axes: Axes, height: Any, values: Iterable[Any], style: Mapping[str, Any], **more: Any
) -> None:
    """Draw a point at each `height`, with its interval; `values` are (low, value, high)."""
    low, value, high = values
    axes.hlines(height, low, high, color=style["color"], linewidth=INTERVAL_WIDTH)
    axes.plot(value, height, **style, linestyle="", zorder=3, **more)


def color_bar(
    axes: Sequence[Axes],
    colors: ScalarMappable,
    label: str,
    labelpad: float | None = None,
    **options: Any,
) -> Colorbar:
    """Add a colour bar without an outline, by default to the right of some panels."""
    bar = axes[0].figure.colorbar(colors, **{"ax": list(axes), **options})
    bar.set_label(label, labelpad=labelpad)
    bar.outline.set_visible(False)
    # Give shades an edge of their own colour: else viewers show thin lines between shades.
    for shade in bar.ax.findobj(QuadMesh):
        shade.set(edgecolor="face")
    return bar


def depth_bar(axes: Sequence[Axes]) -> None:
    """Add the colour bar of depth to the right of some panels."""
    colors = ScalarMappable(Normalize(0, 1), depth_colors())
    options: dict[str, Any] = {"aspect": 30, "pad": 0.02, "ticks": np.linspace(0, 1, 6)}
    color_bar(axes, colors, "Normalized depth", **options)
