"""What figures of Fourier-transformed feature maps share: curves, and their ends by depth."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator

from vitscope.drawing.looks import GRAY, THIN, Look, curve_of_depth, depth_color, points_of_depth
from vitscope.drawing.panels import Panel
from vitscope.drawing.text import published_label

AMPLITUDE = "Δ log amplitude"
COMPONENT = "Δ log amplitude at 1.0π"

# For what stands for points of all depths.
_MIDDLE = depth_color(0.5)


def curves_of(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the curves along the half-diagonal, and by which columns they are in order."""
    return table[table["measure"] == "diagonal"], ["index", "frequency"]


def _ends_of(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the point at 1.0 pi of each cut point; its values are null where there is none.

    Maps of one or two pixels a side have frequency 0 alone, those that are not square no diagonal.
    """
    ends = curves.groupby("index").tail(1).reset_index(drop=True)
    values = ["delta_log_amplitude", "ci_low", "ci_high"]
    return ends.assign(**ends[values].where(ends["frequency"] > 0))


def draw_curves(axes: Axes, curves: pd.DataFrame) -> None:
    """Draw the curve of each cut point that has one, in the colour of its depth."""
    for _, curve in curves.groupby("index"):
        if len(curve) > 1:
            style = curve_of_depth(curve["depth"].iloc[0])
            axes.plot(curve["frequency"], curve["delta_log_amplitude"], **style)
    _say_if_empty(axes)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.xaxis.set_minor_locator(MultipleLocator(0.1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1f}π"))


def draw_ends(panel: Panel) -> None:
    """Draw the values at 1.0 pi by depth, their interval, the bands, and published values.

    Published values of another model have an axis of their own.
    """
    ends, look, theirs = _ends_of(panel.rows), panel.look, panel.theirs
    back = panel.behind(AMPLITUDE)
    panel.draw_bands(ends, back)
    if theirs:
        _draw_points(back, theirs.points, look, published=True)
        panel.legend.add_marker("measured", {**look.line, "color": _MIDDLE}, look)
        panel.legend.add_marker(published_label([theirs]), {**look.hollow, "color": _MIDDLE}, look)
    if ends["delta_log_amplitude"].notna().any():
        panel.draw_interval(ends["depth"], ends["ci_low"], ends["ci_high"], _MIDDLE)
        _draw_points(panel.axes, ends, look, published=False)
    _say_if_empty(panel.axes)


def _draw_points(axes: Axes, points: pd.DataFrame, look: Look, published: bool) -> None:
    depth, value = points["depth"], points["delta_log_amplitude"]
    below = 2.4 if published else 2.8
    line: dict[str, Any] = {"color": GRAY, "linewidth": THIN, "linestyle": "-:"[published]}
    axes.plot(depth, value, **line, clip_on=False, zorder=below)
    style = points_of_depth(look, depth, hollow=published)
    axes.scatter(depth, value, **style, clip_on=False, zorder=below + 0.1)


def _say_if_empty(axes: Axes) -> None:
    if not axes.lines:
        axes.text(0.5, 0.5, "undefined for these maps", ha="center", transform=axes.transAxes)
