import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import begin_at_zero, color_bar, in_percent
from vitscope.drawing.charts import Chart, Curve, Rows, Shade
from vitscope.drawing.figure import Members
from vitscope.drawing.legends import percent
from vitscope.drawing.looks import MAP_COLORS, OF_ALL, QUARTILES_ALPHA, RANGE_ALPHA
from vitscope.drawing.panels import columns_of, make_square_panels


def _scale_of_outliers(*panels: Axes) -> None:
    for axes in panels:
        # A network without outliers has a scale all the same.
        axes.set_ylim(0, max(0.01, 1.05 * axes.dataLim.y1))
    in_percent(*panels)


def plot_token_norms(table: pd.DataFrame, members: Members) -> Figure:
    """Draw two panels per model: norms by depth, and below the share of outliers."""
    (threshold,) = table["threshold"].unique()
    chart = Chart(
        Rows(
            "Norm of a token",
            Curve("median", "median", interval="", in_legend=OF_ALL),
            Shade("quartile", "third_quartile", "quartiles", QUARTILES_ALPHA),
            Shade("lowest", "highest", "lowest to highest", RANGE_ALPHA, zorder=0.9),
            scale=begin_at_zero,
            scales="shared",
        ),
        Rows(
            f"Tokens of norm > {threshold:g} × median",
            Curve("outliers"),
            scale=_scale_of_outliers,
            scales="shared",
        ),
    )
    return chart(table, members=members)


# Inches: what the colour bar of a panel takes of the width, what titles take of the height, and the
# least width of a panel with both.
_BAR_WIDTH, _TEXT_HEIGHT, _LEAST = 0.6, 0.35, 2.25
_THERE = "Images with an outlier there"


def plot_token_outliers(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a map per model, at its cut point of the most outliers: how often a position has one."""
    across = columns_of(len(members), _LEAST)
    panels = make_square_panels(len(members), across * _BAR_WIDTH, _TEXT_HEIGHT, least=_LEAST)
    for panel, member in zip(panels.of_models(members, table), members, strict=True):
        row = panel.rows.iloc[int(panel.rows["outliers"].argmax())]
        panel.axes.set(xticks=[], yticks=[])
        said = "no outliers"
        if row["outliers"] > 0:
            said = f"{row['name']}: {percent(row['outliers'], '.2g')} of tokens"
            _draw_positions(panel.axes, row)
        else:
            panel.axes.text(0.5, 0.5, "none", transform=panel.axes.transAxes, ha="center")
            panel.axes.set(box_aspect=row["height"] / row["width"])
            panel.axes.spines[:].set_visible(True)
        panel.axes.set_title(f"{member.label}\n{said}")
    return panels.figure


def _draw_positions(axes: Axes, row: pd.Series) -> None:
    positions = np.reshape(row["positions"], (row["height"], row["width"]))
    scale = Normalize(0, positions.max())
    cells = axes.imshow(positions, cmap=MAP_COLORS, norm=scale, interpolation="nearest")
    bar = color_bar([axes], cells, _THERE, shrink=0.9, ticks=MaxNLocator(4))
    bar.ax.yaxis.set_major_formatter(lambda share, _: percent(share, ".3g"))
