"""A value by depth, a panel per model or one for all: curves, intervals, and the depth bands.

The mark after a block is hollow where other images could change whether it raises the value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.points import Points, Published, bands
from vitscope.claims.statistics import certain_signs
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.figure import Member
from vitscope.drawing.panels import Panel, Panels, make_panels
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array

OPEN = "hollow: the sign of the change is open"


def plot(
    table: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published] | None = None,
    *,
    value: str,
    label: str,
    from_zero: bool = True,
    together: bool = False,
) -> Figure:
    """Draw a column of a table by normalized depth: one panel per model, or all models `together`.

    `label` is what the column is called. A published curve of another model has an axis of its own
    on the right: only its shape compares.
    """
    if together:
        if published:
            raise VitscopeError(
                "Published curves stand in panels of their models: leave `published` out of the "
                "figure, or `together`."
            )
        panels = make_panels(1)
        _draw_together(panels, table, members, value, from_zero)
        return panels.finish("Normalized depth", label)
    panels = make_panels(len(members))
    draw(panels, table, members, published, value=value, from_zero=from_zero)
    return panels.finish("Normalized depth", label)


def draw(
    panels: Panels,
    table: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published] | None = None,
    *,
    value: str,
    from_zero: bool = True,
) -> None:
    """Draw a column of a table by normalized depth into the panels of the models."""
    for panel in panels.of_models(members, table, published=published):
        points, theirs, back = panel.rows, panel.theirs, panel.behind(value)
        panel.draw_bands(points, back)
        if theirs:
            panel.draw_published(back, theirs, theirs.points["depth"], theirs.points[value])
        _draw_value(panel, value)
        if from_zero:
            begin_at_zero(panel.axes, back)


def _draw_together(
    panels: Panels, table: pd.DataFrame, members: Sequence[Member], value: str, from_zero: bool
) -> None:
    """Draw a curve for each model in one panel, and the depth bands if all have the same."""
    panels.legend.add_models(members)
    shown = [*panels.of_models_together(members, table, ["index"])]
    if all(bands(each.rows) == bands(shown[0].rows) for each in shown):
        shown[0].draw_bands(shown[0].rows)
    for panel in shown:
        _draw_value(panel, value, **panel.look.curve)
        panel.axes.set_xlim(0, 1)
        if from_zero:
            begin_at_zero(panel.axes)


def _draw_value(panel: Panel, value: str, **style: Any) -> None:
    """Draw a curve, and hollow marks where the sign of the change over the block before is open."""
    panel.draw_points(panel.rows, value, **style)
    chosen = panel.rows[_open_changes(Points(panel.rows)[value])]
    if not chosen.empty:
        hollow = panel.look.hollow
        panel.draw_curve(chosen["depth"], chosen[value], **hollow, linestyle="")
        # Its line tells it from what is published, which is hollow and dotted.
        panel.legend.add_line(OPEN, hollow, panel.look)


def _open_changes(values: Array) -> Array:
    """Tell of each point whether the sign of the change before it is open; False if not resampled.

    `values` are as measured, and resampled.
    """
    found = np.zeros(values.shape[1], bool)
    changes = np.diff(values, axis=1)
    known = np.isfinite(changes).all(axis=0)
    if len(changes) > 1 and known.any():
        found[1:][known] = ~certain_signs(changes[:, known])
    return found
