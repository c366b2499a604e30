"""Learning curves: loss, accuracy and learning rate by epoch, with the moments of snapshots."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend
from vitscope.drawing.looks import GRAY, look_of
from vitscope.drawing.rows import rows_of

# What a curve is of, and how it is drawn.
_TRAINING: dict[str, Any] = {"linestyle": "-"}
_TEST: dict[str, Any] = {"linestyle": (0, (4, 1.4))}
_SNAPSHOT: dict[str, Any] = {"color": GRAY, "lw": 0.5, "linestyle": (0, (1, 1.5))}
# From top to bottom: the label, and columns of the table with their styles.
_ROWS = (
    ("Loss", {"loss": _TRAINING, "test_loss": _TEST}),
    ("Accuracy", {"training_accuracy": _TRAINING, "test_accuracy": _TEST}),
    ("Learning rate", {"learning_rate": _TRAINING}),
)


def _draw(axes: Axes, points: pd.DataFrame, columns: Mapping[str, Any], color: str) -> None:
    for epoch in points.loc[points["snapshots"].notna(), "epoch"]:
        axes.axvline(epoch, **_SNAPSHOT, zorder=0)
    for column, style in columns.items():
        axes.plot(points["epoch"], points[column], **style, color=color, marker="", lw=1)
    axes.set_xlim(0, points["epoch"].max())
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw three panels per model: loss, accuracy and learning rate."""
    rows = layout.stacked_panels(len(members), len(_ROWS))
    for number, member in enumerate(members):
        points = rows_of("learning_curves", table, member.model, ["epoch"])
        for panels, (_, columns) in zip(rows, _ROWS, strict=True):
            _draw(panels.axes[number], points, columns, look_of(member.family).color)
        rows[0].axes[number].set_title(member.label)
    for panels, (label, _) in zip(rows, _ROWS, strict=True):
        panels.label("Epoch" if panels is rows[-1] else "", label)
    for axes in (*rows[1].axes, *rows[2].axes):
        axes.set_ylim(bottom=0)
    for axes in rows[1].axes:
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    legend(
        rows[-1],
        {
            "training, on augmented images": Line2D([], [], color=GRAY, marker="", **_TRAINING),
            "test": Line2D([], [], color=GRAY, marker="", **_TEST),
            "snapshot": Line2D([], [], marker="", **_SNAPSHOT),
        },
    )
    return rows[-1].figure
