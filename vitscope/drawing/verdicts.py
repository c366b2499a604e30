"""Verdicts on claims as one picture: claims down, models across, published beside measured."""

from collections.abc import Collection, Mapping, Sequence
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from vitscope.claims.counting import distinct
from vitscope.drawing.legends import Legend, moment
from vitscope.drawing.looks import GRAY, VERDICT_COLORS

_MEANINGS = {
    "yes": "holds, of the recipe",
    "no": "fails, of the recipe",
    "open": "open",
    "yes, in this network": "holds in this network",
    "no, in this network": "fails in this network",
    "yes, without an interval": "holds, without an interval",
    "no, without an interval": "fails, without an interval",
}
# What is published is of one network each.
_OF_PUBLISHED = {"yes": "yes, in this network", "no": "no, in this network"}
# Inches: a row, a column, the statements to the left, labels above, and around the legend below.
_ROW, _COLUMN, _TEXT, _ABOVE, _AROUND = 0.25, 0.36, 2.3, 0.9, 0.15
# Half of the width of a cell, and half of its height.
_HALF, _HIGH = 0.42, 0.36
# Letters of a statement in a line.
_LETTERS = 44


def plot(claims: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Draw a row for each claim and snapshot, and a column for each model or pair of models.

    Where published points say something of any claim, each cell has a half for it.
    """
    once = distinct(claims)
    once = once.assign(published=once["published_verdict"].replace(_OF_PUBLISHED))
    found = once.to_dict("records")
    statements = [
        row["statement"] + ("" if pd.isna(row["snapshot"]) else f" ({moment(row['snapshot'])})")
        for row in found
    ]
    models = [
        labels[row["model"]] + ("" if pd.isna(row["versus"]) else f" –\n{labels[row['versus']]}")
        for row in found
    ]
    rows = list(dict.fromkeys(statements))
    # Single models come before pairs.
    alone = [model for model, row in zip(models, found, strict=True) if pd.isna(row["versus"])]
    columns = list(dict.fromkeys([*alone, *models]))
    width, height = _TEXT + _COLUMN * len(columns), _ABOVE + _ROW * len(rows)
    figure = Figure(figsize=(width, height))
    axes = figure.subplots()
    sides = ["published", "holds"] if once["published"].notna().any() else ["holds"]
    for each, statement, model in zip(found, statements, models, strict=True):
        place = columns.index(model), rows.index(statement)
        _draw(axes, place, [each[side] for side in sides])
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize="small")
    axes.set_yticks(range(len(rows)), [fill(row, _LETTERS) for row in rows], fontsize="x-small")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    below = _add_legend(figure, [said for side in sides for said in once[side]], len(sides) > 1)
    figure.set_size_inches(width, height + below)
    return figure


def _add_legend(figure: Figure, shown: Collection[Any], published: bool) -> float:
    """Add a legend of the verdicts that are shown; return how many inches it takes."""
    legend = Legend()
    for verdict, meaning in _MEANINGS.items():
        if verdict in shown:
            legend.add(meaning, Patch(color=VERDICT_COLORS[verdict]))
    if published:
        legend.add("left half: published, right half: measured", Patch(facecolor="none"))
    legend.draw(figure)
    heights = (each.get_window_extent().height / figure.dpi for each in figure.legends)
    return sum(heights) + _AROUND


def _draw(axes: Axes, place: tuple[int, int], verdicts: Sequence[Any]) -> None:
    """Draw the parts of a cell, side by side, a hollow one where nothing is known."""
    column, row = place
    width = 2 * _HALF / len(verdicts)
    for part, said in enumerate(verdicts):
        known = said in VERDICT_COLORS
        axes.add_patch(
            Rectangle(
                (column - _HALF + part * width, row - _HIGH),
                width,
                2 * _HIGH,
                facecolor=VERDICT_COLORS[said] if known else "none",
                edgecolor="white" if known else GRAY,
                lw=0.6 if known else 0.2,
            )
        )
