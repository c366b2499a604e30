"""The density of all eigenvalues of the Hessian, on a logarithmic axis."""

from collections.abc import Sequence
from math import ceil

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import RANGE_ALPHA, ZERO, look_of
from vitscope.drawing.rows import rows_of

Array = npt.NDArray[np.float64]

# The kernel that smooths a density, over the range of the eigenvalues, and how far an axis reaches
# beyond them, over the kernel.
KERNEL = 0.01
_REACH = 5
_POINTS = 1500
# How many decades below the peak an axis ends.
_DECADES = 7
# Inches.
_ROW_HEIGHT, _REST_HEIGHT = 1.7, 0.2


def smoothed(nodes: Array, weights: Array, width: float, at: Array) -> Array:
    """Return the density at some eigenvalues of a quadrature whose weights add up to 1."""
    kernels = np.exp(-np.square((at[:, None] - nodes) / width) / 2) / (np.sqrt(2 * np.pi) * width)
    density: Array = kernels @ weights
    return density


def _draw(axes: Axes, rows: pd.DataFrame, color: str) -> None:
    nodes = rows["node"].to_numpy()
    quadratures = len(rows[["batch", "probe"]].drop_duplicates())
    width = KERNEL * (np.ptp(nodes) or 1.0)
    at = np.linspace(nodes.min() - _REACH * width, nodes.max() + _REACH * width, _POINTS)
    density = smoothed(nodes, rows["weight"].to_numpy() / quadratures, width, at)
    axes.set_yscale("log")
    axes.set_ylim(density.max() / 10**_DECADES, 3 * density.max())
    axes.set_xlim(at[0], at[-1])
    axes.plot(at, density, color=color)
    axes.fill_between(at, density, axes.get_ylim()[0], color=color, alpha=RANGE_ALPHA, lw=0)
    axes.axvline(0, **ZERO, zorder=1)


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw a row per snapshot and a panel per model, each with axes of its own."""
    snapshots = list(dict.fromkeys(table["snapshot"]))
    rows = layout.stacked_panels(len(members), len(snapshots))
    for panels, snapshot in zip(rows, snapshots, strict=True):
        for axes, member in zip(panels.axes, members, strict=True):
            own = rows_of(table, member.model, snapshot=snapshot)
            _draw(axes, own, look_of(member.family).color)
            axes.set_title(f"{member.label}, {snapshot}")
        last = panels is rows[-1]
        panels.label("Eigenvalue of the Hessian" if last else "", "Density")
    lines = len(snapshots) * ceil(len(members) / rows[0].columns)
    rows[0].resize(height=_ROW_HEIGHT * lines + _REST_HEIGHT)
    return rows[0].figure
