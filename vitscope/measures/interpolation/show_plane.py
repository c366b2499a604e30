from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.contour import QuadContourSet
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
_LETTERS = 18  # of a line of a network's name
_MODELS = [f"{prefix}model" for prefix in PREFIXES]
_AXIS = "Distance of weights"


def plot_plane(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a row for each three networks: the loss on the plane through them, and the error."""
    by_name = members_by_name("plane", table, members)
    planes = [rows for _, rows in table.groupby(_MODELS, sort=False)]
    stacked = stack_panels(2, len(planes), _LEAST)
    _fit_height(stacked, planes)
    of_loss, steps = _levels_of_loss(table), MaxNLocator(20, steps=[1, 2, 2.5, 5, 10])
    of_error = np.asarray(steps.tick_values(table["error"].min(), table["error"].max()))
    shown: tuple[tuple[str, str, Array, Any, Any], ...] = (
        ("nll", "Loss (NLL)", of_loss, LogNorm, LogLocator(subs=(1, 2, 3, 5))),
        ("error", "Error (%)", of_error, Normalize, MaxNLocator(5)),
    )
    for place, (column, label, levels, norm, ticks) in enumerate(shown):
        panels = [each.axes[place] for each in stacked]
        for axes, rows in zip(panels, planes, strict=True):
            count_rows(rows, axes)
            bands = _draw_plane(axes, rows, column, levels, norm(levels[0], levels[-1]))
            _name_networks(axes, rows, by_name)
        color_bar(panels, bands, label, aspect=20 * len(planes), ticks=ticks, format="{x:g}")
    *others, last = stacked
    if not (table["nll"] <= of_loss[-1]).all():
        last.legend.add(f"loss above {of_loss[-1]:.3g}, or not finite", Patch(**UNDEFINED))
    for each in others:
        each.label("", _AXIS)
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


def _levels_of_loss(table: pd.DataFrame) -> Array:
    """Return levels at equal factors, so that basins are not one colour where walls are high.

    They end at twice the highest loss within the triangles, or at the highest if that is lower.
    """
    finite = table[table["nll"].notna()]
    others = finite[["other_share", "third_share"]]
    within = (others >= 0).all(axis=1) & (others.sum(axis=1) <= 1)
    if not within.any():
        raise VitscopeError(
            "The loss is finite nowhere between the networks of a plane, nor at one of them: check "
            "their checkpoints."
        )
    cut = min(finite["nll"].max(), 2 * finite.loc[within, "nll"].max())
    # Where networks have next to no loss, colours take four powers of ten.
    lowest = max(finite["nll"].min(), cut / 1e4)
    return np.geomspace(lowest, max(cut, 1.01 * lowest), 17)


def _draw_plane(
    axes: Axes, rows: pd.DataFrame, column: str, levels: Array, norm: Normalize
) -> QuadContourSet:
    """Draw the values of a plane, and in their colours those of its networks."""
    how: dict[str, Any] = {"norm": norm, "cmap": LOSS_COLORS}
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
    for number, key in enumerate(_MODELS, 1):
        at = rows[rows["network"] == number].iloc[0]
        name = fill(by_name[at[key]].label, _LETTERS, break_long_words=False)
        # Away from the middle of the triangle, and within the panel.
        place, across, aligned = (
            (0.02, "axes fraction", "left"),
            (0.98, "axes fraction", "right"),
            (at["x"], "data", "center"),
        )[number - 1]
        side, away = ("bottom", 5) if number == len(_MODELS) else ("top", -5)
        how = {"textcoords": (across, "offset points"), "va": side, **NETWORK_NAME, "ha": aligned}
        axes.annotate(name, (at["x"], at["y"]), (place, away), **how)
