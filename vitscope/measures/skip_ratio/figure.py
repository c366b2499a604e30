"""The norm of the shortcut over that of the branch, by depth."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.looks import GRAY, ZERO
from vitscope.drawing.panels import make_panels

_OPEN = {"markerfacecolor": "white", "linestyle": "--"}
_NAMES = {"positions": "positions", "class_token": "class token"}


def plot(table: pd.DataFrame, blocks: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: a curve for each kind of token; one scale for all."""
    panels = make_panels(len(members))
    for panel, member in zip(panels.of_models(members, table), members, strict=True):
        panel.draw_bands(rows_of(blocks, member.model, ["index"]))
        for kind, points in panel.rows.groupby("tokens"):
            style = {} if kind == "positions" else _OPEN
            panel.draw_interval(points["depth"], points["ci_low"], points["ci_high"])
            panel.draw_curve(points["depth"], points["ratio"], **{**panel.look.line, **style})
            panel.legend.add_line(_NAMES[str(kind)], {"color": GRAY, "marker": "o", **style})
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
