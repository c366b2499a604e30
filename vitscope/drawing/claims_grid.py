"""A grid of verdicts: a row for each claim, a column for each network of a study or recipe.

A cell has the colour of its verdict, full for a recipe and pale for one network, and what was
counted. Where a claim has several rows about a network, as of pairs with others or of several
moments, the cell says in how many of them it holds.
"""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from vitscope.claims.across_networks import (
    WITHOUT_INTERVAL,
    across_networks,
    common_statement,
    of_the_paper,
)
from vitscope.claims.counting import once_per_recipe
from vitscope.drawing.looks import GRAY, THREAD, VERDICT_LOOKS
from vitscope.drawing.verdicts_page import blank_page

# Inches.
_STATEMENT = 2.75  # the width of statements
_CELL = 0.34  # the width of a cell
_LINE = 0.1  # the height of a line of a statement
_AROUND = 0.03  # the space above and below a statement
_HEAD = 0.18  # the height of a heading over rows
_LETTER = 0.052  # the height of a letter of the name of a column
_KEY = 0.42  # the least height of the key
_EDGE = 0.06

_LETTERS = 60  # per line of a statement
_SIZE = 6  # the size of text in points
_KEY_COLUMNS = 4  # at most
_FILLED = 0.93  # the share of the page that the key may fill: at other dpi, letters are wider
_PALE = 0.75  # the share of white in a verdict on one network
_SEVERAL = "slanted: of pairs or moments, in how many it holds"


def plot_claims_grid(
    claims: pd.DataFrame, labels: Mapping[str, str], recipes: Mapping[str, str]
) -> Figure:
    """Draw the grid of all claims with a verdict; `recipes` maps a model to its recipe's first."""
    once = once_per_recipe(claims)
    known = once[once["holds"].isin([*VERDICT_LOOKS])]
    known = known.assign(column=[recipes.get(model, model) for model in known["model"]])
    columns = [name for name in labels if name in {*known["column"]}]
    of_paper = of_the_paper(known)
    groups = {"Claims of the paper": known[of_paper], "Other claims": known[~of_paper]}
    names = [_name_of_column(name, labels, recipes) for name in columns]
    figure, axes = blank_page(_STATEMENT + _CELL * len(columns) + 2 * _EDGE)
    below = _draw_key(figure, {*known["holds"]}) + _LETTER * max(map(len, names), default=0) + _EDGE
    for place, name in enumerate(names):
        x = _STATEMENT + _CELL * (place + 0.5)
        axes.text(x, below - _EDGE, name, rotation=90, ha="center", va="bottom", fontsize=_SIZE)
    for head, rows in groups.items():
        if not rows.empty:
            axes.text(0, below + _HEAD / 2, head, va="center", weight="bold", fontsize=_SIZE + 0.5)
            below = _draw_rows(axes, rows, columns, below + _HEAD)
    height = below + _EDGE
    axes.set(xlim=(-_EDGE, figure.get_figwidth() - _EDGE), ylim=(height, 0))
    figure.set_figheight(height)
    return figure


def _name_of_column(model: str, labels: Mapping[str, str], recipes: Mapping[str, str]) -> str:
    trainings = sum(first == model for first in recipes.values())
    return f"{labels[model]} (×{trainings})" if trainings > 1 else labels[model]


def _draw_rows(axes: Axes, rows: pd.DataFrame, columns: Sequence[str], top: float) -> float:
    """Draw the rows of some claims below `top`; return where they end."""
    for claim, of_claim in rows.groupby("claim", sort=False):
        said = "\n".join(wrap(common_statement(of_claim), _LETTERS))
        height = _height_of_row(said)
        look: dict[str, Any] = {"va": "center", "fontsize": _SIZE, "linespacing": 1}
        axes.text(0, top + height / 2, said, **look, gid=str(claim))
        for column, found in of_claim.groupby("column", sort=False):
            left = _STATEMENT + _CELL * columns.index(str(column))
            _draw_cell(axes, found, left, top, height)
        axes.plot([0, _STATEMENT], [top, top], color=GRAY, lw=THREAD)
        top += height
    return top


def _height_of_row(statement: str) -> float:
    return _LINE * (1 + statement.count("\n")) + 2 * _AROUND


def rows_of_grid(figure: Figure) -> dict[str, tuple[float, float]]:
    """Return where the row of each claim begins and how high it is, as shares of the figure."""
    (axes,) = figure.axes
    whole = figure.get_figheight()
    found = {}
    for text in axes.texts:
        if claim := text.get_gid():
            height, (_, middle) = _height_of_row(text.get_text()), text.get_position()
            found[claim] = (middle - height / 2) / whole, height / whole
    return found


def _draw_cell(axes: Axes, rows: pd.DataFrame, left: float, top: float, height: float) -> None:
    verdict = across_networks(rows).verdict if len(rows) > 1 else rows["holds"].iloc[0]
    face, ink = colors_of_verdict(verdict)
    how: dict[str, Any] = {"facecolor": face, "edgecolor": "white", "linewidth": 2 * THREAD}
    axes.add_patch(Rectangle((left, top), _CELL, height, **how))
    slant = "oblique" if len(rows) > 1 else "normal"
    middle = left + _CELL / 2, top + height / 2
    said = count_in_cell(rows) or VERDICT_LOOKS[verdict].mark
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": _SIZE, "color": ink}
    axes.text(*middle, said, style=slant, **look)


def count_in_cell(rows: pd.DataFrame) -> str:
    """Return what rows count: of one, its cases; of several, those in which the claim holds."""
    if len(rows) > 1:
        return f"{len(across_networks(rows).holds)}/{len(rows)}"
    (row,) = rows.to_dict("records")
    if pd.isna(row["measured_total"]):
        return ""
    counts = row["values"] if row["trainings"] > 1 else [row["measured_count"]]
    ends = dict.fromkeys(f"{end:.0f}" for end in (min(counts), max(counts)))
    return f"{'–'.join(ends)}/{row['measured_total']:.0f}"


def colors_of_verdict(verdict: str) -> tuple[Any, Any]:
    """Return the colours of a cell and of its text: full for a recipe, pale for one network."""
    color = VERDICT_LOOKS[verdict].color
    if verdict in ("yes", "no"):
        return color, "white"
    pale = tuple(_PALE + (1 - _PALE) * part for part in to_rgb(color))
    return ("white" if verdict.endswith(WITHOUT_INTERVAL) else pale), color


def _draw_key(figure: Figure, shown: set[str]) -> float:
    """Draw the key in as many columns as fit; return its height in inches."""
    handles = [
        Patch(facecolor=colors_of_verdict(each)[0], edgecolor=of.color, lw=THREAD, label=of.meaning)
        for each, of in VERDICT_LOOKS.items()
        if each in shown
    ]
    handles.append(Patch(facecolor="none", edgecolor="none", label=_SEVERAL))
    for columns in range(_KEY_COLUMNS, 0, -1):
        look: dict[str, Any] = {"loc": "upper left", "ncols": columns, "fontsize": _SIZE}
        key = figure.legend(handles=handles, **look)
        taken = key.get_window_extent()
        if columns == 1 or taken.x1 <= _FILLED * figure.bbox.x1:
            break
        key.remove()
    return max(_KEY, taken.height / figure.dpi + _EDGE)
