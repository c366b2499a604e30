"""What figures of Fourier-transformed feature maps share: curves, and their ends by depth."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator

from vitscope.claims.depth_bands import Band, bands
from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.bands import draw_bands
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import GRAY, Look, depth_color, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL, published_label

AMPLITUDE = "Δ log amplitude"
COMPONENT = "Δ log amplitude at 1.0π"

# For what stands for points of all depths.
_MIDDLE = depth_color(0.5)
_CURVE_WIDTH = 0.8
_EDGE = 0.7
_INTERVAL_ALPHA = 0.3


def curves_of(table: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return the curves of a model along the half-diagonal, in order."""
    diagonal = table[table["measure"] == "diagonal"]
    return rows_of("fourier", diagonal, model, ["index", "frequency"])


def ends_of(curves: pd.DataFrame) -> pd.DataFrame:
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
            color = depth_color(curve["depth"].iloc[0])
            values = curve["frequency"], curve["delta_log_amplitude"]
            axes.plot(*values, color=color, lw=_CURVE_WIDTH)
    _say_if_empty(axes)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.xaxis.set_minor_locator(MultipleLocator(0.1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.1f}π"))


def draw_ends(
    axes: Axes, curves: pd.DataFrame, look: Look, theirs: Published | None = None
) -> None:
    """Draw the values at 1.0 pi by depth, their interval, the bands, and published values.

    Published values of another model have an axis of their own.
    """
    ends = ends_of(curves)
    back = layout.axes_of_published(axes, AMPLITUDE, theirs)
    draw_bands(back, bands(ends))
    if theirs:
        _draw_points(back, theirs.points, look, published=True)
    if ends["delta_log_amplitude"].notna().any():
        axes.fill_between(ends["depth"], ends["ci_low"], ends["ci_high"], **_interval())
        _draw_points(axes, ends, look, published=False)
    _say_if_empty(axes)
    axes.set_xlim(0, 1)


def _draw_points(axes: Axes, points: pd.DataFrame, look: Look, published: bool) -> None:
    depth, value = points["depth"], points["delta_log_amplitude"]
    style = ":" if published else "-"
    below = 2.4 if published else 2.8
    axes.plot(depth, value, style, color=GRAY, lw=0.7, clip_on=False, zorder=below)
    colors = [depth_color(each) for each in depth]
    axes.scatter(
        depth,
        value,
        s=look.line["markersize"] ** 2,
        marker=look.marker,
        facecolors="white" if published else colors,
        edgecolors=colors,
        linewidths=_EDGE if published else 0,
        clip_on=False,
        zorder=below + 0.1,
    )


def _say_if_empty(axes: Axes) -> None:
    if not axes.lines:
        axes.text(0.5, 0.5, "undefined for these maps", ha="center", transform=axes.transAxes)


def entries(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> dict[str, Any]:
    """Return what the legend says of the points: only what the figure shows."""
    compared = {m.model: look_of(m.family) for m in members if m.model in published}
    found: dict[str, Any] = {}
    if compared:
        looks = dict.fromkeys(compared.values())
        label = published_label(published[model] for model in compared)
        found["measured"] = tuple(_handle(look, published=False) for look in looks)
        found[label] = tuple(_handle(look, published=True) for look in looks)
    shown = table[table["model"].isin([member.model for member in members])]
    if shown["ci_low"].notna().any():
        found[INTERVAL] = Patch(**_interval())
    return found


def _interval() -> dict[str, Any]:
    return {"facecolor": _MIDDLE, "alpha": _INTERVAL_ALPHA, "lw": 0}


def _handle(look: Look, published: bool) -> Artist:
    marker = look.hollow if published else look.line
    return Line2D([], [], linestyle="", **{**marker, "color": _MIDDLE})


def shown_bands(table: pd.DataFrame, members: Sequence[Member]) -> list[Band]:
    """Return the bands of all members, for the legend."""
    return [band for m in members for band in bands(ends_of(curves_of(table, m.model)))]
