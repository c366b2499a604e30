"""Figures by epoch: a value by depth while a network is trained, and which blocks change it."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from vitscope.claims.claim import in_order
from vitscope.claims.points import Points
from vitscope.claims.statistics import HALF, Found
from vitscope.drawing.axes import color_bar, in_percent, label_decades
from vitscope.drawing.changes import KINDS, Change
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import PLAIN, SHARE_STYLES, ZERO, depth_colors, look_of
from vitscope.drawing.panels import Panel, Panels, Scales, stack_panels

# The scale of epochs is logarithmic, since more snapshots are kept of early epochs, and linear near
# 0, so that epoch 0 has a place.
_SCALE: dict[str, Any] = {"value": "symlog", "linthresh": 1, "linscale": 0.5}
_LEAST_SPACE = 0.1  # between the labels of two epochs, as a share of the axis
_MARKED = 12  # how many epochs have a mark each; of more, some have none
_MOST_LABELS = 8  # beside a bar of colours
_LETTERS = 30  # in a line of a label


class ValueByEpoch(NamedTuple):
    """The upper panels: a column of a table by depth, a curve for each epoch."""

    label: str
    table: pd.DataFrame
    column: str
    scales: Scales
    logarithmic: bool = False


class SharesByEpoch(NamedTuple):
    """A row of lower panels: the share of blocks that change a column as `change` says, by epoch.

    The table has a row for each cut point.
    """

    table: pd.DataFrame
    column: str
    change: Change

    @property
    def label(self) -> str:
        words = " ".join(self.change.label.removesuffix("(%)").split())
        what = words.removeprefix("Change of ")
        if len(words) <= _LETTERS:
            return f"Share of blocks by\nchange of {what}"
        return f"Share of blocks by change of\n{fill(what, _LETTERS)}"


def plot_by_epoch(value: ValueByEpoch, shares: Sequence[SharesByEpoch], members: Members) -> Figure:
    """Draw a column for each model: curves of its epochs and, below, shares of its blocks."""
    by_label: dict[str, list[Member]] = {}
    for member in sorted(members, key=lambda member: member.epoch or 0):
        by_label.setdefault(_label_without_epoch(member), []).append(member)
    models = [by_label[label] for label in dict.fromkeys(map(_label_without_epoch, members))]
    upper, *lower = stack_panels(len(models), 1 + len(shares))
    for axes, moments in zip(upper.axes, models, strict=True):
        axes.set_title(upper.in_lines(_label_without_epoch(moments[0])))
        _draw_curves(axes, value, moments, upper.legend)
        if value.logarithmic:
            axes.set_yscale("log")
            label_decades(axes)
    upper.label("Normalized depth", value.label, value.scales)
    for panels, counted in zip(lower, shares, strict=True):
        for axes, moments in zip(panels.axes, models, strict=True):
            _draw_shares(axes, counted, moments, panels)
        panels.label("Epoch" if panels is lower[-1] else "", counted.label)
    return lower[-1].finish("Epoch", shares[-1].label)


def _label_without_epoch(member: Member) -> str:
    return member.label.removesuffix(f", epoch {member.epoch}")


def _draw_curves(axes: Axes, value: ValueByEpoch, moments: Members, legend: Legend) -> None:
    count = len(moments)
    colors = depth_colors().resampled(count)
    for number, member in enumerate(moments):
        points = rows_of(value.table, member.model, ["index"])
        count_rows(points, axes)
        axes.plot(points["depth"], points[value.column], **PLAIN, color=colors(number))
    Panel(axes, look_of(moments[-1]), legend, points).draw_bands(points)
    scale = ScalarMappable(BoundaryNorm(np.arange(count + 1), count), colors)
    bar = color_bar([axes], scale, "Epoch", pad=0.03, aspect=14)
    named = np.unique(np.linspace(0, count - 1, min(count, _MOST_LABELS)).round().astype(int))
    labels = [str(moments[number].epoch) for number in named]
    bar.set_ticks([number + 0.5 for number in named], labels=labels)
    bar.ax.tick_params(which="both", length=0)


def _draw_shares(axes: Axes, counted: SharesByEpoch, moments: Members, panels: Panels) -> None:
    epochs = [float(member.epoch or 0) for member in moments]
    rows = [rows_of(counted.table, member.model) for member in moments]
    panel = Panel(axes, look_of(moments[0]), panels.legend, pd.concat(rows))
    count_rows(panel.rows, axes)
    points = [Points(in_order(each, each)) for each in rows]
    change = counted.change
    for kind, name in KINDS.items():
        shares = [change.find_share(each, counted.column, kind) for each in points]
        found = {at: share for at, share in zip(epochs, shares, strict=True) if share}
        if found:
            label = f"{name} that {change.what_blocks_do(kind)} it"
            _draw_share_of_kind(panel, found, SHARE_STYLES[kind], label)
    axes.axhline(HALF, **ZERO, zorder=0)
    axes.set_ylim(-0.04, 1.04)
    in_percent(axes)
    _set_scale_of_epochs(axes, epochs)


def _draw_share_of_kind(
    panel: Panel, found: dict[float, Found], style: dict[str, Any], label: str
) -> None:
    epochs, shares = pd.Series([*found]), [*found.values()]
    panel.legend.add_line(label, style)
    if all(each.interval for each in shares):
        low, high = (pd.Series(ends) for ends in zip(*(f.interval for f in shares), strict=True))
        panel.draw_interval(epochs, low, high, style["color"])
    marks = {"markevery": _LEAST_SPACE} if len(epochs) > _MARKED else {}
    panel.draw_curve(epochs, pd.Series([each.value for each in shares]), **style, **marks)


def _set_scale_of_epochs(axes: Axes, epochs: Sequence[float]) -> None:
    """Scale the axis; label the last epoch, and those before it that have room for a label."""
    first, last = min(epochs), max(epochs)
    axes.set_xscale(**_SCALE)
    axes.set_xlim(first / 1.15 if first > 1 else -0.15, max(last, 1) * 1.15)
    scale = axes.xaxis.get_transform().transform
    low, high = scale(np.array(axes.get_xlim()))
    labelled: list[float] = []
    for epoch in sorted(epochs, reverse=True):
        if not labelled or scale(labelled[-1]) - scale(epoch) >= _LEAST_SPACE * (high - low):
            labelled.append(epoch)
    axes.xaxis.set_major_locator(FixedLocator(labelled))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
