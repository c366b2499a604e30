"""Verdicts on claims on one page: a row for each claim, with what is published and each model.

A model is named in the mark and the colour of its verdict, two models as a pair.
"""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from vitscope.claims.counting import distinct
from vitscope.drawing.legends import moment
from vitscope.drawing.looks import GRAY, THREAD, VERDICT_LOOKS

# What is published is of one network each.
_OF_PUBLISHED = {"yes": "yes, in this network", "no": "no, in this network"}
# Points: no letter is smaller.
_SIZE, _HEAD_SIZE = 6, 6.5
# Inches: where columns begin, the right edge, a line of text, and the space around a row.
_FIGURE, _CLAIM, _PUBLISHED, _MEASURED, _RIGHT = 0.08, 0.85, 3.7, 4.4, 7.4
LINE, _AROUND, _BETWEEN = 0.1, 0.015, 0.06
# Letters of a statement, and of the name of a figure, in a line.
_LETTERS, _LETTERS_OF_NAME = 66, 15


# Inches that a mark takes of a line, and between claims that have no rows of their own.
_MARK, _BETWEEN_CLAIMS = 0.18, 0.03


class Mark(NamedTuple):
    """A verdict and on what, or a word between verdicts."""

    verdict: str | None
    name: str


# The marks of a claim, and its lines.
Said = tuple[Sequence[Mark], Sequence[str]]


def plot(claims: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Draw a row for each claim, beside the figure that it is counted on first."""
    once = distinct(claims)
    figure = Figure(figsize=(_RIGHT + _FIGURE, 1))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    shown = [said for said in VERDICT_LOOKS if said in {*once["holds"], *_published(once)}]
    meanings = [Mark(said, VERDICT_LOOKS[said].meaning) for said in shown]
    below = flow(axes, meanings, _AROUND, _FIGURE, _RIGHT) + 2 * _AROUND
    heads = {_FIGURE: "Figure", _CLAIM: "Claim", _PUBLISHED: "Published", _MEASURED: "Measured"}
    for left, head in heads.items():
        if left != _PUBLISHED or once["published_verdict"].notna().any():
            write(axes, left, below, head, fontsize=_HEAD_SIZE, fontweight="bold")
    below += LINE + _AROUND
    named = once.assign(first=once.groupby("statement")["figure"].transform("first"))
    for name, of_figure in named.groupby("first", sort=False):
        axes.plot([_FIGURE, _RIGHT], [below, below], color=GRAY, lw=THREAD)
        below += _AROUND
        lines = wrap(str(name).replace("_", " "), _LETTERS_OF_NAME)
        write(axes, _FIGURE, below, "\n".join(lines))
        least = below + LINE * len(lines)
        for statement, rows in of_figure.groupby("statement", sort=False):
            below = _draw_claim(axes, below, str(statement), rows, labels)
        below = max(below, least)
    figure.set_figheight(below + _AROUND)
    axes.set(xlim=(0, figure.get_figwidth()), ylim=(figure.get_figheight(), 0))
    return figure


def _draw_claim(
    axes: Axes, top: float, statement: str, rows: pd.DataFrame, labels: Mapping[str, str]
) -> float:
    """Draw what is known of a claim below `top`; return where the next one begins."""
    lines = wrap(statement, _LETTERS)
    write(axes, _CLAIM, top, "\n".join(lines))
    theirs = dict.fromkeys(
        Mark(said, str(series))
        for said, series in zip(_published(rows), rows["published_series"], strict=True)
        if said in VERDICT_LOOKS
    )
    ours = []
    for snapshot, at in rows.groupby("snapshot", sort=False, dropna=False):
        if not pd.isna(snapshot):
            ours.append(Mark(None, f"{moment(str(snapshot))}:"))
        ours += [
            Mark(row["holds"], _name(row, labels))
            for row in at.to_dict("records")
            if row["holds"] in VERDICT_LOOKS
        ]
    ends = flow(axes, theirs, top, _PUBLISHED, _MEASURED), flow(axes, ours, top, _MEASURED)
    return max(*ends, top + LINE * len(lines)) + _AROUND


def _published(rows: pd.DataFrame) -> Iterable[Any]:
    return rows["published_verdict"].replace(_OF_PUBLISHED)


def _name(row: Mapping[Any, Any], labels: Mapping[str, str]) -> str:
    return " / ".join(labels[row[each]] for each in ("model", "versus") if not pd.isna(row[each]))


def flow(
    axes: Axes, marks: Iterable[Mark], top: float, left: float, right: float = _RIGHT
) -> float:
    """Write verdicts one after another between two edges, in lines; return where they end."""
    x, line = left, 0
    for mark in marks:
        look, said = {}, mark.name
        if mark.verdict:
            of = VERDICT_LOOKS[mark.verdict]
            look, said = {"color": of.color, "fontweight": of.weight}, f"{of.mark} {mark.name}"
        text = write(axes, x, top + line * LINE, said, **look)
        width = text.get_window_extent().width / axes.figure.dpi
        if x > left and x + width > right:
            x, line = left, line + 1
            text.set_position((72 * x, -72 * (top + line * LINE)))
        x += width + _BETWEEN
    return top + (line + 1) * LINE


def write_claims(axes: Axes, found: Sequence[Said], left: float) -> None:
    """Write claims below each other at the top of axes, each behind its marks."""
    below = 0.0
    for marks, lines in found:
        flow(axes, marks, below, left)
        write(axes, left + _MARK * len(marks), below, "\n".join(lines))
        below += LINE * len(lines) + _BETWEEN_CLAIMS


def height_of(found: Sequence[Said]) -> float:
    """Return how many inches claims take, with a line below them."""
    return LINE + sum(LINE * len(lines) + _BETWEEN_CLAIMS for _, lines in found)


def write(axes: Axes, x: float, y: float, text: str, **look: Any) -> Annotation:
    """Write text at inches from the left and the top of axes, which do not shrink for it."""
    return axes.annotate(
        text,
        (0, 1),
        xycoords="axes fraction",
        xytext=(72 * x, -72 * y),
        textcoords="offset points",
        va="top",
        linespacing=1,
        in_layout=False,
        **{"fontsize": _SIZE} | look,
    )
