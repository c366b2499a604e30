"""What both kinds of maps of attention draw: a map, and a line around most of it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from vitscope.drawing.figure import Member
from vitscope.drawing.looks import CURVE
from vitscope.drawing.overlays import Groups, draw_map

Array = npt.NDArray[Any]

# Into so many parts a position is cut, up and across, for a line that runs along its edges.
_FINE = 8


def scale_of(rows: pd.DataFrame) -> Normalize:
    """Return one scale for maps that compare, in percent of the attention of a query."""
    return Normalize(0, 100 * float(max(max(values) for values in rows["weights"])))


def label(
    groups: Groups,
    members: Sequence[Member],
    shown: Sequence[pd.DataFrame],
    scales: Sequence[Normalize],
    of: Callable[[pd.Series], str],
) -> None:
    """Put titles and colour bars to the maps of models; `of` says what a model shows."""
    firsts = [rows.iloc[0] for rows in shown]
    groups.titles(
        [f"{m.label}: {row['name']}{of(row)}" for m, row in zip(members, firsts, strict=True)]
    )
    groups.bars(scales, "Attention", " %")


def mask_of(weights: Array, mass: float) -> Array:
    """Tell which positions, the brightest first, hold a share of all that a map has."""
    order = np.argsort(-weights, kind="stable")
    held = np.cumsum(weights[order]) / weights.sum()
    mask = np.zeros(len(weights), bool)
    mask[order[: int(np.searchsorted(held, mass)) + 1]] = True
    return mask


def draw_weights(
    axes: Axes, row: pd.Series, scale: Normalize, size: tuple[int, int], side: float
) -> None:
    """Draw how much a query takes of each key, and a line around the share that is asked for.

    `size` is that of the picture in pixels, `side` that of the panel in inches.
    """
    weights = np.asarray(row["weights"])
    grid = (row["height"], row["width"])
    draw_map(axes, 100 * weights, grid, scale, size)
    if pd.notna(row["mass"]):
        _draw_line(axes, mask_of(weights, row["mass"]).reshape(grid), size, side)


def _draw_line(axes: Axes, mask: Array, size: tuple[int, int], side: float) -> None:
    """Draw a line along the edges of the positions of a mask, over a picture of `size` pixels."""
    large = np.pad(np.kron(mask, np.ones((_FINE, _FINE))), 1)
    down, across = (
        (np.arange(-1, cells * _FINE + 1) + 0.5) * pixels / (cells * _FINE) - 0.5
        for pixels, cells in zip(size, mask.shape, strict=True)
    )
    # In a panel smaller than an inch, the line is thinner.
    width = CURVE * min(1, side)
    axes.contour(across, down, large, [0.5], colors="white", linewidths=width)
