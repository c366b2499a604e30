"""Error on test images and loss on training images: Fig. 5 of the paper."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.axes import axis_above
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import INTERVAL_WIDTH, ROW, Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import another_model
from vitscope.measures.classification.figure_fit_shared import LABELS, add_entries

_INCHES_PER_MODEL = 0.24
# Rows: the published points of a model stand below its measured ones.
_BELOW = 0.3
_INCHES_FOR_AXES = 0.75
_INCHES_ABOVE = 0.3
_MARGIN = 0.08


def _draw_measured(axes: Axes, row: pd.Series, height: int, look: Look) -> None:
    axes.hlines(height, row["ci_low"], row["ci_high"], color=look.color, linewidth=INTERVAL_WIDTH)
    axes.plot(row["value"], height, linestyle="", **look.line, zorder=3)


def _draw_published(axes: Axes, theirs: Published, metric: str, height: int, look: Look) -> None:
    values = theirs.points.loc[theirs.points["metric"] == metric, "value"]
    axes.plot(values, [height + _BELOW] * len(values), linestyle="", **look.hollow, zorder=2.5)


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw a row per model, the smallest error on top: left its error, right its training loss.

    Published points of other models have axes of their own above: only their order compares.
    """
    rows = {member.model: rows_of(table, member.model).set_index("metric") for member in members}
    errors = {model: float(found["value"]["error_percent"]) for model, found in rows.items()}
    ordered = sorted(members, key=lambda member: errors[member.model])
    above = another_model(published.values())
    panels = layout.panels(2)
    height = _INCHES_FOR_AXES + _INCHES_PER_MODEL * len(members) + _INCHES_ABOVE * above
    panels.figure.set_figheight(height)
    for axes, (metric, label) in zip(panels.axes, LABELS.items(), strict=True):
        back = axis_above(axes) if above else axes
        for position, member in enumerate(ordered):
            look = look_of(member.family)
            back.axhline(position, **ROW, zorder=0)
            _draw_measured(axes, rows[member.model].T[metric], position, look)
            if member.model in published:
                _draw_published(back, published[member.model], metric, position, look)
        axes.set(xlabel=label, ylim=(len(ordered) - 0.4, -0.6))
        axes.set_yticks(range(len(ordered)), [member.label for member in ordered])
        axes.tick_params(axis="y", length=0)
        axes.margins(x=_MARGIN)
        if above:
            back.set_xlabel(f"Published {label[0].lower()}{label[1:]}")
            back.margins(x=_MARGIN)
    panels.axes[1].tick_params(labelleft=False)
    add_entries(panels.legend, published, "upper axes")
    panels.legend.draw(panels.figure)
    return panels.figure
