"""A value by depth, a panel per model: the curve, its interval, and the depth bands."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing.figure import Member
from vitscope.drawing.panels import Panels, make_panels


def plot(
    table: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published] | None = None,
    *,
    value: str,
    label: str,
    from_zero: bool = True,
) -> Figure:
    """Draw a column of a table by normalized depth, one panel per model.

    `label` is what the column is called. A published curve of another model has an axis of its own
    on the right: only its shape compares.
    """
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
        panel.draw_points(points, value)
        if from_zero:
            panel.axes.set_ylim(bottom=0)
            back.set_ylim(bottom=0)
