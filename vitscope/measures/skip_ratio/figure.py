"""The norm of the shortcut over that of the branch, by depth."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.looks import CURVE, GRAY, ZERO
from vitscope.drawing.panels import Panel, make_panels

_NAMES = {"positions": "positions", "class_token": "class token"}


def _draw_kind(panel: Panel, kind: str, name: str, points: pd.DataFrame) -> None:
    style: dict[str, Any] = panel.look.line
    of_all: dict[str, Any] = {"color": GRAY, "marker": "o"}
    if kind == "class_token":
        style = panel.look.hollow | {"linestyle": "--"}
        of_all |= {"linestyle": "--", "markerfacecolor": "white"}
        of_all |= {"markeredgecolor": GRAY, "markeredgewidth": CURVE}
    panel.draw_points(points, "ratio", **style)
    panel.legend.add_line(name, of_all)


def plot_skip_ratio(table: pd.DataFrame, blocks: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: a curve for each kind of token; one scale for all."""
    panels = make_panels(len(members))
    for panel, member in zip(panels.of_models(members, table), members, strict=True):
        panel.draw_bands(rows_of(blocks, member.model, ["index"]))
        for kind, name in _NAMES.items():
            points = panel.rows[panel.rows["tokens"] == kind]
            if len(points):
                _draw_kind(panel, kind, name, points)
        panel.axes.axhline(1, **ZERO, zorder=0.5)
    low = min(table["ratio"].min(), table["ci_low"].min(), 1)
    high = max(table["ratio"].max(), table["ci_high"].max(), 1)
    for axes in panels.axes[: len(members)]:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.2, 1.2 * high)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
    return panels.finish("Normalized depth", "Norm of shortcut / branch")
