"""Verdicts on claims as one picture: claims down, models across, published beside measured."""

from collections.abc import Hashable, Mapping
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from vitscope.claims.report import distinct
from vitscope.drawing.looks import GRAY, VERDICT_COLORS

_MEANINGS = {"yes": "holds", "no": "fails", "undecided": "undecided"}
# Inches: a row, a column, the statements to the left, labels above and the legend below.
_ROW, _COLUMN, _TEXT, _ABOVE, _BELOW = 0.25, 0.36, 2.3, 0.9, 0.4
# Letters of a statement in a line.
_LETTERS = 44


def plot(claims: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Draw a row for each claim and snapshot, and a column for each model or pair of models."""
    once = distinct(claims)
    found = once.to_dict("records")
    statements = [_statement(row) for row in found]
    models = [_models(row, labels) for row in found]
    rows = list(dict.fromkeys(statements))
    # Single models come before pairs.
    alone = [model for model, row in zip(models, found, strict=True) if pd.isna(row["versus"])]
    columns = list(dict.fromkeys([*alone, *models]))
    width = _TEXT + _COLUMN * len(columns)
    figure = Figure(figsize=(width, _ABOVE + _ROW * len(rows) + _BELOW))
    axes = figure.subplots()
    for each, statement, model in zip(found, statements, models, strict=True):
        place = columns.index(model), rows.index(statement)
        _draw(axes, place, each["published"], each["holds"])
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize="small")
    axes.set_yticks(range(len(rows)), [fill(row, _LETTERS) for row in rows], fontsize="x-small")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    handles = [Patch(color=VERDICT_COLORS[each], label=_MEANINGS[each]) for each in VERDICT_COLORS]
    note = Patch(facecolor="none", label="left half: published, right half: measured")
    figure.legend(handles=[*handles, note], loc="outside lower left", ncols=4, fontsize="small")
    return figure


def _statement(row: Mapping[Hashable, Any]) -> str:
    at = "" if pd.isna(row["snapshot"]) else f" ({row['snapshot']})"
    return f"{row['statement']}{at}"


def _models(row: Mapping[Hashable, Any], labels: Mapping[str, str]) -> str:
    versus = "" if pd.isna(row["versus"]) else f" –\n{labels[row['versus']]}"
    return f"{labels[row['model']]}{versus}"


def _draw(axes: Axes, place: tuple[int, int], published: object, measured: object) -> None:
    """Draw the two halves of a cell, a hollow one where nothing is known."""
    column, row = place
    for left, said in ((column - 0.42, published), (column, measured)):
        known = isinstance(said, str)
        axes.add_patch(
            Rectangle(
                (left, row - 0.36),
                0.42,
                0.72,
                facecolor=VERDICT_COLORS[str(said)] if known else "none",
                edgecolor="white" if known else GRAY,
                lw=0.6 if known else 0.2,
            )
        )
