"""Norms of tokens by depth, how many are outliers, and where these lie in the image."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vitscope.drawing.axes import begin_at_zero, color_bar
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import GRAY, MAP_COLORS, QUARTILES_ALPHA, RANGE_ALPHA
from vitscope.drawing.panels import Panel, make_square_panels, stack_panels

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
    begin_at_zero(panel.axes)


def _draw_outliers(panel: Panel) -> None:
    points = panel.rows
    panel.draw_bands(points)
    panel.draw_points(points, "outliers")
    # A network without outliers has a scale all the same.
    highest = float(np.nanmax(points[["outliers", "ci_high"]].to_numpy(np.float64)))
    panel.axes.set_ylim(0, max(0.01, 1.05 * highest))
    panel.axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw two panels per model: norms by depth, and below the share of outliers."""
    upper, lower = stack_panels(len(members), 2)
    for panel in upper.of_models(members, table):
        _draw_norms(panel)
    for panel in lower.of_models(members, table):
        _draw_outliers(panel)
    (threshold,) = table["threshold"].unique()
    upper.label("", "Norm of a token")
    return lower.finish("Normalized depth", f"Above {threshold:g} medians")


# Inches: what the colour bar takes of the width, and what titles take of the height.
_BAR_WIDTH, _TEXT_HEIGHT = 0.6, 0.35


def plot_outliers(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a map per model, at its cut point of the most outliers: how often a position has one."""
    panels = make_square_panels(len(members), _BAR_WIDTH, _TEXT_HEIGHT)
    # One scale for all, which a network without outliers has, too.
    scale = Normalize(0, 0.01)
    for panel, member in zip(panels.of_models(members, table), members, strict=True):
        row = panel.rows.iloc[int(panel.rows["outliers"].argmax())]
        positions = np.reshape(row["positions"], (row["height"], row["width"]))
        scale.vmax = max(scale.vmax or 0, positions.max())
        panel.axes.imshow(positions, cmap=MAP_COLORS, norm=scale)
        share = f"{100 * row['outliers']:.1f} % of tokens"
        panel.axes.set_title(f"{member.label}\n{row['name']}: {share}")
        panel.axes.set(xticks=[], yticks=[])
    colors = ScalarMappable(scale, MAP_COLORS)
    bar = color_bar(panels.axes, colors, "Images with an outlier there")
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    return panels.figure
