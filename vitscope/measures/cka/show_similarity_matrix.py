from itertools import combinations
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from vitscope.drawing.axes import color_bar
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Members
from vitscope.drawing.looks import BY_CHANCE, SIMILARITY_COLORS, UNDEFINED, text_scale
from vitscope.drawing.panels import make_square_panels
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.cka.measure import LEVEL

# What panels show: a title, the column of values, and the column of p.
_PANELS = (("CKA", "cka", "p"), ("Mutual nearest neighbours", "mutual", "mutual_p"))

# Inches.
_BARS_WIDTH = 1.6  # both colour bars and the labels of rows
_TEXT_HEIGHT = 0.75
_LEAST_CELL = 0.26  # the narrowest cell with a number


def plot_similarity_matrix(table: pd.DataFrame, blocks: pd.DataFrame, members: Members) -> Figure:
    """Draw a matrix for each measure: how similar two networks are after their last blocks."""
    pairs = _pairs_after_last_blocks(table, blocks, members)
    of_neighbours = pairs.assign(images=pairs["mutual_images"]).drop(columns="batches")
    panels = make_square_panels(len(_PANELS), _BARS_WIDTH, _TEXT_HEIGHT)
    for axes, (title, value, p), counted in zip(
        panels.axes, _PANELS, (pairs, of_neighbours), strict=True
    ):
        values = _as_matrix(pairs[value], len(members))
        by_chance = _as_matrix(pairs[p], len(members)) >= LEVEL
        _draw_matrix(axes, values, by_chance, [member.label for member in members])
        axes.set(title=title, xlabel="State after the last block")
        if panels.columns > 1 and axes is not panels.axes[0]:
            axes.tick_params(labelleft=False)
        count_rows(counted, axes)
        if by_chance.any():
            panels.legend.add_marker("not above chance", BY_CHANCE)
    if pairs[[value for _, value, _ in _PANELS]].isna().any(axis=None):
        panels.legend.add("undefined", Patch(**UNDEFINED))
    panels.legend.draw(panels.figure)
    return panels.figure


def _pairs_after_last_blocks(
    table: pd.DataFrame, blocks: pd.DataFrame, members: Members
) -> pd.DataFrame:
    """Return the row of each two members, in the order of `combinations`, of their last blocks."""
    last = blocks.groupby("model")["index"].max()
    at_end = (table["index"] == table["model"].map(last)) & (
        table["other_index"] == table["other_model"].map(last)
    )
    found = table[at_end].set_index(["model", "other_model"], drop=False)
    wanted = [(one.model, other.model) for one, other in combinations(members, 2)]
    for one, other in wanted:
        if (one, other) not in found.index:
            raise VitscopeError(
                f"The cka_between table lacks the last blocks of the models '{one}' and "
                f"'{other}': delete the tables and run again."
            )
    return found.loc[wanted]


def _as_matrix(values: pd.Series, size: int) -> Array:
    """Return values of pairs as a symmetric matrix, without a value on its diagonal."""
    matrix = np.full((size, size), np.nan)
    row, column = np.triu_indices(size, k=1)
    matrix[row, column] = matrix[column, row] = values
    return matrix


def _draw_matrix(axes: Axes, values: Array, by_chance: Array, labels: list[str]) -> None:
    size = len(values)
    # The diagonal is 1, and would take the colours of all other cells.
    highest = ceil(10 * np.nanmax(values, initial=0.01)) / 10
    cells = axes.imshow(
        np.ma.masked_invalid(values), cmap=SIMILARITY_COLORS, vmin=0, vmax=highest, aspect="auto"
    )
    off_diagonal = ~np.eye(size, dtype=bool)
    for row, column in np.argwhere(np.isnan(values) & off_diagonal):
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **UNDEFINED))
    numbered = axes.get_window_extent().width / axes.figure.dpi > _LEAST_CELL * text_scale() * size
    if numbered:
        for row, column in np.argwhere(~np.isnan(values)):
            dark = values[row, column] < 0.6 * highest
            said, color = f"{values[row, column]:.2f}", "white" if dark else "black"
            axes.text(column, row, said, ha="center", va="center", color=color, size="x-small")
    rows, columns = np.nonzero(by_chance)
    axes.plot(columns, rows + 0.32 * numbered, **BY_CHANCE)
    axes.set_xticks(range(size), labels, rotation=90)
    axes.set_yticks(range(size), labels)
    axes.set_box_aspect(1)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    color_bar([axes], cells, "")
