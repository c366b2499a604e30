"""What probes read by depth: classes from vectors of images, places and pixels from tokens."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.looks import DIAGONAL, HOLLOW_POINTS, PROBE_STYLES, REFERENCE
from vitscope.drawing.panels import Panel, make_panels, stack_panels
from vitscope.measures.probe.measure import (
    LINEAR,
    MEAN,
    NEIGHBOURS,
    PIXELS,
    POSITION,
    PREFIX,
    TOKEN,
)

_VECTORS = {MEAN: "mean token", PREFIX: "prefix token", TOKEN: "single token"}
_TARGETS = {POSITION: "position", PIXELS: "pixels"}
# What is read of few outliers may be far below nothing.
_LOWEST = -0.2


def _draw_probe(panel: Panel) -> None:
    points = panel.rows
    mean = points[points["of"] == MEAN]
    panel.draw_bands(mean)
    lines = ("network itself", "network", DIAGONAL), ("most frequent class", "chance", REFERENCE)
    for label, column, style in lines:
        if mean[column].notna().any():
            panel.axes.axhline(mean[column].iloc[0], **style, zorder=1)
            panel.legend.add_line(label, style)
    for of, label in _VECTORS.items():
        of_vector = points[points["of"] == of]
        if len(of_vector):
            panel.draw_points(of_vector, "accuracy", label=label, **PROBE_STYLES[label])
    panel.axes.set_ylim(0, 1)


def plot_probe(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw two panels per model: accuracy by depth of linear probes, and below of neighbours."""
    upper, lower = stack_panels(len(members), 2)
    for panels, by in ((upper, LINEAR), (lower, NEIGHBOURS)):
        for panel in panels.of_models(members, table[table["by"] == by]):
            _draw_probe(panel)
    upper.label("", "Linear accuracy")
    return lower.finish("Normalized depth", "Neighbours' accuracy")


def plot_probe_tokens(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: what is read of the position and the pixels of tokens by depth."""
    panels = make_panels(len(members))
    for panel in panels.of_models(members, table):
        rows = panel.rows
        panel.draw_bands(rows[rows["target"] == PIXELS])
        for target, label in _TARGETS.items():
            points = rows[rows["target"] == target]
            panel.draw_points(points, "r2", label=label, **PROBE_STYLES[label])
            if points["r2_outliers"].notna().any():
                style = PROBE_STYLES[label] | HOLLOW_POINTS
                shown = points["r2_outliers"].clip(lower=_LOWEST)
                panel.draw_curve(points["depth"], shown, **style)
                panel.legend.add_marker(f"{label}, of outliers", style)
        panel.axes.set_ylim(max(_LOWEST, min(0, panel.axes.get_ylim()[0])), 1)
    return panels.finish("Normalized depth", "Share that is read (R²)")
