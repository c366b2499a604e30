"""Norms of tokens by depth: how they are distributed, and how many are outliers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from vitscope.claims.depth_bands import Band, bands
from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.bands import band_entries, draw_bands
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend, shades
from vitscope.drawing.looks import GRAY, Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL

# From the lowest norm to the highest, and between the quartiles.
_WIDE, _NARROW, _INTERVAL = 0.15, 0.35, 0.25


def _draw_norms(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    depth = points["depth"]
    shade: dict[str, Any] = {"color": look.color, "lw": 0}
    axes.fill_between(depth, points["lowest"], points["highest"], alpha=_WIDE, **shade)
    quartiles = points["quartile"], points["third_quartile"]
    axes.fill_between(depth, *quartiles, alpha=_NARROW, **shade)
    axes.plot(depth, points["median"], **look.line, clip_on=False, zorder=3)
    axes.set_ylim(bottom=0)


def _draw_outliers(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    depth = points["depth"]
    shade: dict[str, Any] = {"color": look.color, "alpha": _INTERVAL, "lw": 0}
    axes.fill_between(depth, points["ci_low"], points["ci_high"], **shade)
    axes.plot(depth, points["outliers"], **look.line, clip_on=False, zorder=3)
    # A network without outliers has a scale all the same.
    highest = float(np.nanmax(points[["outliers", "ci_high"]].to_numpy(np.float64)))
    axes.set_ylim(0, max(0.01, 1.05 * highest))
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))


def _entries(table: pd.DataFrame, members: Sequence[Member]) -> dict[str, Any]:
    colors = list(dict.fromkeys(look_of(member.family).color for member in members))
    found: dict[str, Any] = {
        "median": Line2D([], [], color=GRAY, marker="o"),
        "quartiles": shades(colors, _NARROW),
        "lowest to highest": shades(colors, _WIDE),
    }
    if table["ci_low"].notna().any():
        found[INTERVAL] = shades(colors, _INTERVAL)
    return found


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw two panels per model: norms by depth, and below the share of outliers."""
    upper, lower = layout.stacked_panels(len(members), 2)
    shown: list[Band] = []
    for above, below, member in zip(upper.axes, lower.axes, members, strict=True):
        points = rows_of("token_norms", table, member.model, ["index"])
        look, shaded = look_of(member.family), bands(points)
        for axes in (above, below):
            draw_bands(axes, shaded)
            axes.set_xlim(0, 1)
        _draw_norms(above, points, look)
        _draw_outliers(below, points, look)
        above.set_title(member.label)
        shown += shaded
    (threshold,) = table["threshold"].unique()
    upper.label("", "Norm of a token")
    lower.label("Normalized depth", f"Above {threshold:g} medians")
    legend(lower, _entries(table, members) | band_entries(shown))
    return lower.figure
