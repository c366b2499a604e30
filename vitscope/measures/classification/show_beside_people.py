from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.data.shown_images import read_shown_conditions
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import INTERVAL, Legend
from vitscope.drawing.looks import (
    EVERY_SECOND,
    INTERVAL_BAR,
    INTERVAL_WIDTH,
    OF_ALL,
    RANGE_BAR,
    REFERENCE,
    Look,
    looks_of,
)
from vitscope.drawing.panels import stack_panels
from vitscope.measures.classification.beside_people import MEAN

# Inches: the narrowest panel beside others, of eight conditions and their mean.
_LEAST = 2.4
# The rows of panels: a label, a column, the name of its interval, and its value by chance.
_VALUES = (
    ("Accuracy", "accuracy", "ci", 1 / 16),
    ("Error consistency\nwith people", "consistency", "consistency", 0.0),
)
# How far the mean is from the last condition, and models from each other; conditions are 1 apart.
_GAP, _APART = 0.5, 0.13


def plot_beside_people(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a column for each set of images: accuracy by condition, and below it consistency."""
    of_sets = _members_by_set(table, members)
    stacked = stack_panels(len(of_sets), len(_VALUES), _LEAST)
    for member in members:
        stacked[0].legend.expect(member.label)
    for panels, (label, column, interval, chance) in zip(stacked, _VALUES, strict=True):
        for axes, (name, group) in zip(panels.axes, of_sets.items(), strict=True):
            axes.set_title(name if panels.titled else "")
            axes.axhline(chance, **REFERENCE)
            _draw_people(axes, _placed(table, group[0]), column, panels.legend)
            apart = _APART * (np.arange(len(group)) - (len(group) - 1) / 2)
            for member, look, shift in zip(group, looks_of(group), apart, strict=True):
                rows = _placed(table, member)
                count_rows(rows[rows["condition"] != MEAN], axes)
                panels.legend.add_line(member.label, look.curve, look)
                _draw_model(axes, rows.assign(x=rows["x"] + shift), column, interval, look)
                mark = {**INTERVAL_BAR, "color": look.color}
                panels.legend.add_marker(INTERVAL, mark, look.color)
            _mark_conditions(axes, name, panels.legend)
            axes.set_ylim((0, 1) if column == "accuracy" else None)
        panels.legend.add_line("chance", REFERENCE)
        panels.label("", label, "shared")
    figure = stacked[-1].finish("", label, "shared")
    for axes, name in zip(stacked[-1].axes, of_sets, strict=True):
        axes.set_xlabel(stacked[-1].in_lines(read_shown_conditions(name)["quantity"][0]))
    return figure


def _members_by_set(table: pd.DataFrame, members: Members) -> dict[str, list[Member]]:
    found: dict[str, list[Member]] = {}
    for member in members:
        found.setdefault(rows_of(table, member.model)["set"].iloc[0], []).append(member)
    return found


def _placed(table: pd.DataFrame, member: Member) -> pd.DataFrame:
    """Return the rows of a model with their places; the mean of one condition is left out."""
    rows = rows_of(table, member.model, ["position"])
    is_mean = rows["condition"] == MEAN
    rows = rows.assign(x=rows["position"] + _GAP * is_mean)
    return rows[~is_mean] if (rows["counted"] & ~is_mean).sum() < 2 else rows


def _draw_line(axes: Axes, rows: pd.DataFrame, column: str, style: Mapping[str, Any]) -> None:
    """Draw a curve over conditions, and their mean apart from it."""
    is_mean = rows["condition"] == MEAN
    for part, line in ((rows[~is_mean], {}), (rows[is_mean], {"linestyle": ""})):
        axes.plot(part["x"], part[column], **{**style, **line}, clip_on=False, zorder=3)


def _draw_model(axes: Axes, rows: pd.DataFrame, column: str, interval: str, look: Look) -> None:
    low, high = (rows[f"{interval}_{end}"] for end in ("low", "high"))
    axes.vlines(rows["x"], low, high, color=look.color, linewidth=INTERVAL_WIDTH)
    _draw_line(axes, rows, column, look.curve)


def _draw_people(axes: Axes, rows: pd.DataFrame, column: str, legend: Legend) -> None:
    low, high = (rows[f"people_{column}_{end}"] for end in ("lowest", "highest"))
    axes.vlines(rows["x"], low, high, **RANGE_BAR)
    _draw_line(axes, rows, f"people_{column}", OF_ALL)
    legend.add_line("people", OF_ALL)
    legend.add_shade("from person to person", RANGE_BAR["color"], RANGE_BAR["alpha"])


def _mark_conditions(axes: Axes, name: str, legend: Legend) -> None:
    """Name conditions below the axis, and shade those that the mean leaves out."""
    conditions = read_shown_conditions(name)
    ticks: dict[float, str] = dict(enumerate(conditions["label"]))
    for nth in np.flatnonzero(conditions["counted"] == "0").tolist():
        across = axes.get_xaxis_transform()
        axes.fill_between([nth - 0.5, nth + 0.5], 0, 1, transform=across, zorder=0, **EVERY_SECOND)
        legend.add_shade("not in the mean", EVERY_SECOND["color"], 1)
    if (conditions["counted"] == "1").sum() > 1:
        ticks[len(ticks) + _GAP] = MEAN
    axes.set_xticks([*ticks], [*ticks.values()])
    axes.set_xlim(-0.5, max(ticks) + 0.5)
