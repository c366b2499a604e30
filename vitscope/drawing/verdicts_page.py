"""A page of verdicts: a row for each claim, with verdicts on published and on measured values.

After the mark of a verdict stands the model, or the pair of models, in the colour of the verdict.
"""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.text import Annotation

from vitscope.claims.across_networks import name_subject
from vitscope.claims.counting import once_per_recipe
from vitscope.claims.verdicts import say_doubt, say_how_many
from vitscope.drawing.legends import moment
from vitscope.drawing.looks import GRAY, THREAD, VERDICT_LOOKS

# Verdicts on published values are about a single network, or a pair.
_OF_PUBLISHED = {"yes": "yes, in this network", "no": "no, in this network"}
_SIZE = 6  # the size of text in points, the smallest on the page
_HEAD_SIZE = 6.5  # the size of the heads of columns in points

# Where columns begin, in inches.
_FIGURE = 0.08
_CLAIM = 0.85
_PUBLISHED = 3.7
_MEASURED = 4.4
_RIGHT = 7.4  # where the last column ends

# Inches.
LINE = 0.1  # the height of a line of text
_AROUND = 0.015  # the space around a row
_BETWEEN = 0.06  # the space between marks
_MARK = 0.18  # the width of a mark before a claim
_BETWEEN_CLAIMS = 0.03  # the gap between claims in lists without columns

_LETTERS = 66  # per line of a statement
_LETTERS_OF_NAME = 15  # per line of the name of a figure


class Mark(NamedTuple):
    """A verdict and the name of its subject; or a word between verdicts, without a verdict."""

    verdict: str | None
    name: str


# The marks of a claim, and the lines of its statement.
Said = tuple[Sequence[Mark], Sequence[str]]


def plot_verdicts(claims: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """Draw a row for each claim, grouped by the first figure that it is counted on."""
    # Trainings of one recipe have one verdict, with the count of each.
    once = once_per_recipe(claims)
    figure, axes = blank_page(_RIGHT + _FIGURE)
    shown = [said for said in VERDICT_LOOKS if said in {*once["holds"], *_published_verdicts(once)}]
    meanings = [Mark(said, VERDICT_LOOKS[said].meaning) for said in shown]
    below = write_verdict_marks(axes, meanings, _AROUND, _FIGURE, _RIGHT) + 2 * _AROUND
    heads = {_FIGURE: "Figure", _CLAIM: "Claim", _PUBLISHED: "Published", _MEASURED: "Measured"}
    for left, head in heads.items():
        if left != _PUBLISHED or once["published_verdict"].notna().any():
            write_at_inches(axes, left, below, head, fontsize=_HEAD_SIZE, fontweight="bold")
    below += LINE + _AROUND
    named = once.assign(first=once.groupby("statement")["figure"].transform("first"))
    for name, of_figure in named.groupby("first", sort=False):
        axes.plot([_FIGURE, _RIGHT], [below, below], color=GRAY, lw=THREAD)
        below += _AROUND
        lines = wrap(str(name).replace("_", " "), _LETTERS_OF_NAME)
        write_at_inches(axes, _FIGURE, below, "\n".join(lines))
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
    """Draw a claim and its verdicts below `top`; return where the next claim begins."""
    lines = wrap(statement, _LETTERS)
    write_at_inches(axes, _CLAIM, top, "\n".join(lines))
    theirs = dict.fromkeys(
        Mark(said, str(series))
        for said, series in zip(_published_verdicts(rows), rows["published_series"], strict=True)
        if said in VERDICT_LOOKS
    )
    ours = []
    for snapshot, at in rows.groupby("snapshot", sort=False, dropna=False):
        if not pd.isna(snapshot):
            ours.append(Mark(None, f"{moment(str(snapshot))}:"))
        ours += [
            Mark(row["holds"], f"{name_subject(row, labels)}{say_how_many(row)}{say_doubt(row)}")
            for row in at.to_dict("records")
            if row["holds"] in VERDICT_LOOKS
        ]
    ends = (
        write_verdict_marks(axes, theirs, top, _PUBLISHED, _MEASURED),
        write_verdict_marks(axes, ours, top, _MEASURED),
    )
    return max(*ends, top + LINE * len(lines)) + _AROUND


def blank_page(width: float) -> tuple[Figure, Axes]:
    """Return a page, whose height is set when it is written, and axes that cover it."""
    figure = Figure(figsize=(width, 1))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    return figure, axes


def _published_verdicts(rows: pd.DataFrame) -> Iterable[Any]:
    return rows["published_verdict"].replace(_OF_PUBLISHED)


def write_verdict_marks(
    axes: Axes, marks: Iterable[Mark], top: float, left: float, right: float = _RIGHT
) -> float:
    """Write marks one after another, in lines between two edges; return the last line's bottom."""
    x, line = left, 0
    for mark in marks:
        look, said = {}, mark.name
        if mark.verdict:
            of = VERDICT_LOOKS[mark.verdict]
            look, said = {"color": of.color, "fontweight": of.weight}, f"{of.mark} {mark.name}"
        text = write_at_inches(axes, x, top + line * LINE, said, **look)
        width = text.get_window_extent().width / axes.figure.dpi
        if x > left and x + width > right:
            x, line = left, line + 1
            text.set_position((72 * x, -72 * (top + line * LINE)))
        x += width + _BETWEEN
    return top + (line + 1) * LINE


def write_columns_of_claims(
    part: SubFigure, columns: Sequence[Sequence[Said]], left: float, width: float
) -> None:
    """Write columns of claims side by side into a part of a page, between two edges in inches."""
    axes = part.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    for place, found in enumerate(columns):
        _write_claims(axes, found, left + place * (width - left) / len(columns))


def _write_claims(axes: Axes, found: Sequence[Said], left: float) -> None:
    """Write claims below each other at the top of axes, each to the right of its marks."""
    below = 0.0
    for marks, lines in found:
        write_verdict_marks(axes, marks, below, left)
        write_at_inches(axes, left + _MARK * len(marks), below, "\n".join(lines))
        below += LINE * len(lines) + _BETWEEN_CLAIMS


def height_of_claims(found: Sequence[Said]) -> float:
    """Return the height of claims in inches, with an empty line below them."""
    return LINE + sum(LINE * len(lines) + _BETWEEN_CLAIMS for _, lines in found)


def write_at_inches(axes: Axes, x: float, y: float, text: str, **look: Any) -> Annotation:
    """Write text at a distance in inches from the left and the top of axes, outside the layout."""
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
