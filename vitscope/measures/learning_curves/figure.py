"""Learning curves: loss, accuracy and learning rate by epoch, with the moments of snapshots."""

from collections.abc import Iterable, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import DASHED, GRAY, MOMENT, PLAIN
from vitscope.drawing.panels import Panel, stack_panels

# From top to bottom: the label, and columns of the table.
_ROWS = {
    "Loss": ("loss", "test_loss"),
    "Accuracy": ("training_accuracy", "test_accuracy"),
    "Learning rate": ("learning_rate",),
}


def _draw(panel: Panel, columns: Iterable[str]) -> None:
    points = panel.rows
    for epoch in points.loc[points["snapshots"].notna(), "epoch"]:
        panel.axes.axvline(epoch, **MOMENT, zorder=0)
    for column in columns:
        style = DASHED if column.startswith("test") else PLAIN
        panel.axes.plot(points["epoch"], points[column], color=panel.look.color, **style)
    panel.axes.set_xlim(0, points["epoch"].max())
    panel.axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def plot_training(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw three panels per model: loss, accuracy and learning rate."""
    rows = stack_panels(len(members), len(_ROWS))
    for panels, (label, columns) in zip(rows, _ROWS.items(), strict=True):
        for panel in panels.of_models(members, table, ["epoch"]):
            _draw(panel, columns)
            if label != "Loss":
                begin_at_zero(panel.axes)
            if label == "Accuracy":
                panel.axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        panels.label("", label)
    legend = rows[-1].legend
    legend.add_line("training, on augmented images", {"color": GRAY, **PLAIN})
    legend.add_line("test", {"color": GRAY, **DASHED})
    legend.add_line("snapshot", MOMENT)
    return rows[-1].finish("Epoch", "Learning rate")
