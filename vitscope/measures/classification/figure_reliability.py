"""Reliability: the accuracy of predictions by their confidence."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import BAR_ALPHA, DIAGONAL, HATCHED, PALE
from vitscope.drawing.panels import Panel, Panels
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import percent

# The height of a diagram to that of the histogram below it.
_DIAGRAM_TO_HISTOGRAM = (3, 1)
_INCHES_PER_ROW = 2.3
_INCHES_FOR_LEGEND = 0.2
# Points: the scores stand between the title and the diagram.
_TITLE_PAD = 15
_SCORES_PAD = 5


def _draw_diagram(panel: Panel) -> None:
    """Draw the accuracy of each bin that has images, and the gap to its mean confidence."""
    axes, bins, color, legend = panel.axes, panel.rows, panel.look.color, panel.legend
    filled = bins[bins["images"] > 0]
    across: dict[str, Any] = {
        "x": filled["low"],
        "width": filled["high"] - filled["low"],
        "align": "edge",
    }
    gap = filled["confidence"] - filled["accuracy"]
    style: dict[str, Any] = {"color": color, "alpha": BAR_ALPHA, "lw": 0}
    axes.bar(height=filled["accuracy"], **style, **across)
    axes.bar(height=gap, bottom=filled["accuracy"], edgecolor=color, **HATCHED, **across)
    axes.plot([0, 1], [0, 1], **DIAGONAL)
    legend.add_shade("accuracy", color, BAR_ALPHA)
    legend.add("gap to mean confidence", Patch(edgecolor=color, **HATCHED), color)
    legend.add_line("calibrated", DIAGONAL)
    axes.set(xlim=(0, 1), ylim=(0, 1))


def _panels(count: int) -> tuple[Panels, Panels]:
    """Return panels, and as many flat ones, each below one of the first."""
    diagrams = layout.panels(count)
    figure, columns = diagrams.figure, diagrams.columns
    rows = ceil(count / columns)
    figure.set_figheight(rows * _INCHES_PER_ROW + _INCHES_FOR_LEGEND)
    grid = figure.add_gridspec(2 * rows, columns, height_ratios=_DIAGRAM_TO_HISTOGRAM * rows)
    below = []
    for position, axes in enumerate(diagrams.axes):
        row, column = divmod(position, columns)
        axes.set_subplotspec(grid[2 * row, column])
        axes.tick_params(labelbottom=False)
        below.append(figure.add_subplot(grid[2 * row + 1, column], sharex=axes))
    return diagrams, Panels(figure, below, columns, legend=diagrams.legend, titled=False)


def _draw_histogram(panel: Panel) -> None:
    """Draw how many of the images are in each bin."""
    bins = panel.rows
    share = bins["images"] / bins["images"].sum()
    width = bins["high"] - bins["low"]
    panel.axes.bar(bins["low"], share, width, align="edge", linewidth=0, color=PALE)
    panel.legend.add_shade("share of images", PALE, 1)


def _in_words(scores: pd.Series) -> str:
    accuracy, ece = (percent(scores[name], ".1f") for name in ("accuracy", "ece"))
    signed = percent(scores["signed_ece"], "+.1f")
    return f"accuracy {accuracy}, ECE {ece} ({signed})".replace("-", "\N{MINUS SIGN}")


def _write_above(axes: Axes, text: str) -> None:
    axes.annotate(
        text,
        (0.5, 1),
        (0, _SCORES_PAD),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        size=matplotlib.rcParams["legend.fontsize"],
    )


def plot(
    table: pd.DataFrame,
    classification: pd.DataFrame,
    members: Sequence[Member],
) -> Figure:
    """Draw one panel per model: accuracy by bin of confidence, and below it the images per bin."""
    diagrams, histograms = _panels(len(members))
    for panel, member in zip(diagrams.of_models(members, table, ()), members, strict=True):
        scores = rows_of(classification, member.model).iloc[0]
        _draw_diagram(panel)
        panel.axes.set_title(member.label, pad=_TITLE_PAD)
        _write_above(panel.axes, _in_words(scores))
    for panel in histograms.of_models(members, table, ()):
        _draw_histogram(panel)
    highest = max(below.get_ylim()[1] for below in histograms.axes)
    for below in histograms.axes:
        below.set_ylim(0, highest)
    diagrams.label("", "Accuracy")
    return histograms.finish("Confidence", "Share")
