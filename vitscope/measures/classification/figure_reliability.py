"""Reliability: the accuracy of predictions by their confidence."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.layout import Panels
from vitscope.drawing.legends import legend
from vitscope.drawing.looks import Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import percent

_ACCURACY_ALPHA = 0.45
_DIAGONAL: dict[str, Any] = {"color": "black", "linestyle": "--", "linewidth": 0.7}
_GAP: dict[str, Any] = {"facecolor": "none", "linewidth": 0.5, "hatch": "//////"}
_SHARES: dict[str, Any] = {"color": "#b3b3b3"}
# The height of a diagram to that of the histogram below it.
_DIAGRAM_TO_HISTOGRAM = (3, 1)
_INCHES_PER_ROW = 2.3
_INCHES_FOR_LEGEND = 0.2
# Points: the scores stand between the title and the diagram.
_TITLE_PAD = 15
_SCORES_PAD = 5


def _draw_diagram(axes: Axes, bins: pd.DataFrame, look: Look) -> None:
    """Draw the accuracy of each bin that has images, and the gap to its mean confidence."""
    filled = bins[bins["images"] > 0]
    across: dict[str, Any] = {
        "x": filled["low"],
        "width": filled["high"] - filled["low"],
        "align": "edge",
    }
    gap = filled["confidence"] - filled["accuracy"]
    axes.bar(
        height=filled["accuracy"], color=look.color, alpha=_ACCURACY_ALPHA, linewidth=0, **across
    )
    axes.bar(height=gap, bottom=filled["accuracy"], edgecolor=look.color, **_GAP, **across)
    axes.plot([0, 1], [0, 1], **_DIAGONAL)
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
    return diagrams, Panels(figure, below, columns)


def _draw_histogram(axes: Axes, bins: pd.DataFrame) -> None:
    """Draw how many of the images are in each bin."""
    share = bins["images"] / bins["images"].sum()
    width = bins["high"] - bins["low"]
    axes.bar(bins["low"], share, width, align="edge", linewidth=0, **_SHARES)


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


def _entries(members: Sequence[Member]) -> dict[str, Any]:
    colors = dict.fromkeys(look_of(member.family).color for member in members)
    accuracy = tuple(Patch(facecolor=c, alpha=_ACCURACY_ALPHA, linewidth=0) for c in colors)
    gap = tuple(Patch(edgecolor=color, **_GAP) for color in colors)
    diagonal: Artist = Line2D([], [], **_DIAGONAL)
    return {
        "accuracy": accuracy,
        "gap to mean confidence": gap,
        "calibrated": diagonal,
        "share of images": Patch(linewidth=0, **_SHARES),
    }


def plot(
    table: pd.DataFrame,
    classification: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published],
) -> Figure:
    """Draw one panel per model: accuracy by bin of confidence, and below it the images per bin."""
    diagrams, histograms = _panels(len(members))
    for axes, below, member in zip(diagrams.axes, histograms.axes, members, strict=True):
        bins = rows_of("reliability", table, member.model)
        scores = rows_of("classification", classification, member.model).iloc[0]
        _draw_diagram(axes, bins, look_of(member.family))
        _draw_histogram(below, bins)
        axes.set_title(member.label, pad=_TITLE_PAD)
        _write_above(axes, _in_words(scores))
    highest = max(below.get_ylim()[1] for below in histograms.axes)
    for below in histograms.axes:
        below.set_ylim(0, highest)
    diagrams.label("", "Accuracy")
    histograms.label("Confidence", "Share")
    legend(diagrams, _entries(members))
    return diagrams.figure
