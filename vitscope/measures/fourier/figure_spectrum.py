"""The share of the variance of feature maps in three bands of frequency, by depth."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from vitscope.claims.published import Published
from vitscope.drawing.bands import band_entries
from vitscope.drawing.by_depth import panels_by_depth
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend, shades
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL

_STYLES: dict[str, dict[str, Any]] = {
    "low": {"color": "#0072b2", "marker": "o"},
    "middle": {"color": "#009e73", "marker": "s"},
    "high": {"color": "#d55e00", "marker": "^"},
}
_INTERVAL_ALPHA = 0.25


def _draw(axes: Axes, rows: pd.DataFrame) -> None:
    for band, style in _STYLES.items():
        points = rows[rows["band"] == band]
        depth = points["depth"]
        shade = {"color": style["color"], "alpha": _INTERVAL_ALPHA, "lw": 0}
        axes.fill_between(depth, points["ci_low"], points["ci_high"], **shade)
        axes.plot(depth, points["share"], **style, clip_on=False, zorder=3)


def _entries(table: pd.DataFrame) -> dict[str, Any]:
    """Return the legend, which says where the bands end."""
    limits = table.drop_duplicates("band").set_index("band")
    begin, end = (f"{edge:g}π" for edge in limits.loc["middle", ["above", "up_to"]])
    limits_of = {"low": f"up to {begin}", "middle": f"{begin} to {end}", "high": f"above {end}"}
    found: dict[str, Any] = {
        f"{band}: {limits_of[band]}": Line2D([], [], **style) for band, style in _STYLES.items()
    }
    if table["ci_low"].notna().any():
        colors = (style["color"] for style in _STYLES.values())
        found[INTERVAL] = shades(colors, _INTERVAL_ALPHA)
    return found


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: what share of the variance each band has, by normalized depth."""
    rows = [rows_of("spectrum", table, each.model, ["index"]) for each in members]
    points = [each[each["band"] == "low"].reset_index(drop=True) for each in rows]
    panels, shown = panels_by_depth(members, points)
    for axes, of_model in zip(panels.axes, rows, strict=True):
        _draw(axes, of_model)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    panels.label("Normalized depth", "Share of the variance")
    legend(panels, _entries(table) | band_entries(shown))
    return panels.figure
