"""Norms of tokens by depth: how they are distributed, and how many are outliers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import GRAY, QUARTILES_ALPHA, RANGE_ALPHA
from vitscope.drawing.panels import Panel

# Columns of the table between which a shade is drawn, and how opaque it is.
_SHADES = {
    "quartiles": ("quartile", "third_quartile", QUARTILES_ALPHA),
    "lowest to highest": ("lowest", "highest", RANGE_ALPHA),
}


def _draw_norms(panel: Panel) -> None:
    points, color = panel.rows, panel.look.color
    panel.draw_bands(points)
    panel.legend.add_line("median", {"color": GRAY, "marker": "o"})
    for label, (_, _, alpha) in _SHADES.items():
        panel.legend.add_shade(label, color, alpha)
    for low, high, alpha in reversed(_SHADES.values()):
        ends = points[low], points[high]
        panel.axes.fill_between(points["depth"], *ends, color=color, alpha=alpha, lw=0)
    panel.draw_curve(points["depth"], points["median"])
    panel.axes.set_ylim(bottom=0)


def _draw_outliers(panel: Panel) -> None:
    points = panel.rows
    panel.draw_bands(points)
    panel.draw_interval(points["depth"], points["ci_low"], points["ci_high"])
    panel.draw_curve(points["depth"], points["outliers"])
    # A network without outliers has a scale all the same.
    highest = float(np.nanmax(points[["outliers", "ci_high"]].to_numpy(np.float64)))
    panel.axes.set_ylim(0, max(0.01, 1.05 * highest))
    panel.axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw two panels per model: norms by depth, and below the share of outliers."""
    upper, lower = layout.stacked_panels(len(members), 2)
    for panel in upper.of_models(members, table):
        _draw_norms(panel)
    for panel in lower.of_models(members, table):
        _draw_outliers(panel)
    (threshold,) = table["threshold"].unique()
    upper.label("", "Norm of a token")
    return lower.finish("Normalized depth", f"Above {threshold:g} medians")
