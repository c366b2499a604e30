from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator

from vitscope.drawing.axes import color_bar
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members
from vitscope.drawing.looks import LOSS_COLORS, NETWORK, NETWORK_NAME, THREAD, UNDEFINED, text_scale
from vitscope.drawing.panels import Panels, stack_panels
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.pairs import PREFIXES
from vitscope.measures.interpolation.show import members_by_name

# In inches.
_LEAST = 2.4  # the narrowest panel, with names in it
_BESIDE = 0.95  # the width of the labels and the colour bar of a panel
_AROUND = 0.3  # the height of the labels of a panel
_PAGE, _LOW = 9.0, 1.6  # the height of a page, and of a row of many, which takes several
_LETTERS = 14  # of a line of a network's name
_MOST = 1e4  # how much larger than the lowest the highest loss of the scale is, at most
_MODELS = [f"{prefix}model" for prefix in PREFIXES]
_SHARES = ["other_share", "third_share"]
_AXIS = "Distance of weights"


def plot_plane(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a row for each three networks: the loss on the plane through them, and the error."""
    by_name = members_by_name("plane", table, members)
    planes = [rows for _, rows in table.groupby(_MODELS, sort=False)]
    stacked = stack_panels(2, len(planes), _LEAST)
    _fit_height(stacked, planes)
    losses, errors = zip(*(panels.axes for panels in stacked), strict=True)
    cut = _cut_of_losses(table)
    # By equal factors, so that basins are not one colour where walls are high.
    lowest = max(table["nll"].min(), cut / _MOST)
    levels = np.geomspace(lowest, max(cut, 1.01 * lowest), 17)
    bands = _draw_planes(losses, planes, "nll", levels, LogNorm(levels[0], levels[-1]))
    how: dict[str, Any] = {
        "aspect": 20 * len(planes),
        "format": "{x:g}",
        "ticks": LogLocator(subs=(1, 2, 3, 5)),
    }
    color_bar(losses, bands, "Loss (NLL)", **how)
    steps = MaxNLocator(20, steps=[1, 2, 2.5, 5, 10])
    levels = np.asarray(steps.tick_values(table["error"].min(), table["error"].max()))
    bands = _draw_planes(errors, planes, "error", levels, Normalize(levels[0], levels[-1]))
    color_bar(errors, bands, "Error (%)", aspect=20 * len(planes), ticks=MaxNLocator(5))
    for axes, rows in zip((*losses, *errors), (*planes, *planes), strict=True):
        _name_networks(axes, rows, by_name)
    *others, last = stacked
    if not (table["nll"] <= cut).all():
        last.legend.add(f"loss above {cut:.3g}, or not finite", Patch(**UNDEFINED))
    for panels in others:
        panels.label("", _AXIS)
    return last.finish(_AXIS, _AXIS)


def _fit_height(stacked: Sequence[Panels], planes: Sequence[pd.DataFrame]) -> None:
    """Make a figure as high as its planes need; where they are a few, no higher than a page."""
    width, columns = stacked[0].figure.get_figwidth(), stacked[0].columns
    side = width / columns - _BESIDE * text_scale()
    shapes = [each[["x", "y"]].max() - each[["x", "y"]].min() for each in planes]
    high = side * max(height / wide for wide, height in shapes) + _AROUND * text_scale()
    rows = len(planes) * 2 // columns
    stacked[0].resize(height=rows * min(high, max(_PAGE / rows, _LOW)))
    stacked[0].figure.set_layout_engine("compressed")


def _cut_of_losses(table: pd.DataFrame) -> float:
    """Return twice the highest loss within the triangles, or the highest of all if it is lower."""
    finite = table[table["nll"].notna()]
    within = (finite[_SHARES] >= 0).all(axis=1) & (finite[_SHARES].sum(axis=1) <= 1)
    if not within.any():
        raise VitscopeError(
            "The loss is finite nowhere between the networks of a plane, nor at one of them: check "
            "their checkpoints."
        )
    return float(min(finite["nll"].max(), 2 * finite.loc[within, "nll"].max()))


def _draw_planes(
    panels: Sequence[Axes],
    planes: Sequence[pd.DataFrame],
    column: str,
    levels: Array,
    norm: Normalize,
) -> Any:
    """Draw the values of each plane, and in their colour those of its networks."""
    how: dict[str, Any] = {"norm": norm, "cmap": LOSS_COLORS}
    for axes, rows in zip(panels, planes, strict=True):
        count_rows(rows, axes)
        networks = rows["network"] > 0
        grid = rows[~networks].pivot(index="y", columns="x", values=column).clip(lower=levels[0])
        plane = grid.columns, grid.index, np.ma.masked_invalid(grid.to_numpy())
        axes.patch.set(**UNDEFINED)
        bands = axes.contourf(*plane, levels, corner_mask=False, **how)
        bands.set_edgecolor("face")
        axes.contour(*plane, levels[1:-1], corner_mask=False, colors="white", linewidths=THREAD)
        x, y, values = (rows.loc[networks, name] for name in ("x", "y", column))
        axes.scatter(x, y, c=values, **NETWORK, **how)
        axes.set_aspect("equal")
    return bands


def _name_networks(axes: Axes, rows: pd.DataFrame, by_name: Mapping[str, Member]) -> None:
    networks = rows[rows["network"] > 0].sort_values("network")
    for at, key in zip(networks.itertuples(), _MODELS, strict=True):
        name = fill(by_name[getattr(at, key)].label, _LETTERS, break_long_words=False)
        # Away from the middle of the triangle.
        side, away = ("bottom", 5) if key == _MODELS[-1] else ("top", -5)
        how = {"textcoords": "offset points", "va": side, **NETWORK_NAME}
        axes.annotate(name, (at.x, at.y), (0, away), **how)
