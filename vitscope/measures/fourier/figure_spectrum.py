"""The share of the variance of feature maps in three bands of frequency, by depth."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import FREQUENCY_BANDS
from vitscope.drawing.panels import Panel


def _labels(table: pd.DataFrame) -> dict[str, str]:
    """Return what to call each band: where it ends."""
    limits = table.drop_duplicates("band").set_index("band")
    begin, end = (f"{edge:g}π" for edge in limits.loc["middle", ["above", "up_to"]])
    ends = {"low": f"up to {begin}", "middle": f"{begin} to {end}", "high": f"above {end}"}
    return {band: f"{band}: {ends[band]}" for band in FREQUENCY_BANDS}


def _draw(panel: Panel, labels: dict[str, str]) -> None:
    for band, style in FREQUENCY_BANDS.items():
        points = panel.rows[panel.rows["band"] == band].reset_index(drop=True)
        if band == "low":
            panel.draw_bands(points)
        panel.legend.add_line(labels[band], style)
        depth, color = points["depth"], style["color"]
        panel.draw_interval(depth, points["ci_low"], points["ci_high"], color)
        panel.draw_curve(depth, points["share"], **style)


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: what share of the variance each band has, by normalized depth."""
    panels = layout.panels(len(members))
    for panel in panels.of_models(members, table):
        _draw(panel, _labels(table))
        panel.axes.set_ylim(0, 1)
        panel.axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    return panels.finish("Normalized depth", "Share of the variance")
