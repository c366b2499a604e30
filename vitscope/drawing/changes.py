"""Bars of the change of a value over each block, with the intervals that claims test.

A curve's interval at each cut point is wide, since images differ, while the value of nearly all of
them may fall over a block. The interval of a change is paired: the same images stand before and
after the block.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from vitscope.claims.claim import in_order
from vitscope.claims.intervals import resampled_interval
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, change_over_each_block, changes, share_of
from vitscope.drawing.axes import share_limits
from vitscope.drawing.legends import INTERVAL, minus
from vitscope.drawing.looks import (
    INTERVAL_BAR,
    INTERVAL_ON_BAR,
    KIND_COLORS,
    KIND_EDGE,
    LABELS_OF_KINDS,
    SUBSAMPLING_HATCH,
    ZERO,
)
from vitscope.drawing.notes import write_over_panel
from vitscope.drawing.panels import Panel
from vitscope.files.arrays import Array

_WIDTH = 0.8  # of a bar, as a share of its block
# The kinds of blocks that are counted, and what they are called.
KINDS = {"msa": "MSAs", "conv": "Convs", "mlp": "MLPs"}


@dataclass(frozen=True)
class Change:
    """How the change of a value over each block is shown.

    `label` names it. A `ratio` is shown in percent; else it is a difference. MSAs are said to lower
    the value and other blocks to raise it or, with `msas_raise`, the other way round. The scale is
    linear from `-linear` to `linear`, and logarithmic beyond; None makes all of it linear.
    """

    label: str
    ratio: bool = False
    msas_raise: bool = False
    linear: float | None = None

    def find(self, points: Points, column: str) -> Array:
        """Return the change over each block: as measured, then in each resample."""
        found = change_over_each_block(points, column, self.ratio)
        return 100 * np.expm1(found) if self.ratio else found

    def what_blocks_do(self, kind: str) -> str:
        """Say what blocks of a kind are said to do to the value: "raise" or "lower" it."""
        return "raise" if self.msas_raise == (kind == "msa") else "lower"

    def find_share(self, points: Points, column: str, kind: str) -> Found | None:
        """Return the share of blocks of a kind that do to a column what they are said to do."""
        sign = 1 if self.what_blocks_do(kind) == "raise" else -1
        return share_of(sign * changes(points, column, kind, self.ratio))

    def count(self, points: Points, column: str) -> str:
        """Say of how many MSAs or, without any, other blocks the value changes as it is said to."""
        for kind, name in KINDS.items():
            found = self.find_share(points, column, kind)
            if found:
                does = self.what_blocks_do(kind)
                share = f"{found.count} of {found.total}".replace(" ", "\N{NO-BREAK SPACE}")
                return f"{name} that {does} it: {share}"
        return ""

    def scale(self, *panels: Axes) -> None:
        """Set one scale for panels of measured and of published values."""
        for axes in panels if self.linear else ():
            axes.set_yscale("symlog", linthresh=self.linear, linscale=0.6, subs=(2, 5))
            axes.yaxis.set_major_formatter(lambda value, _: minus(f"{value:g}"))
            # Leave room beyond the longest bars, as this scale shows them.
            axes.autoscale(axis="y")
        share_limits(panels)


@dataclass(frozen=True)
class Bars:
    """A bar for the change of a column over each block, in the colour of the block's kind."""

    column: str
    change: Change
    label: str = ""

    def draw(self, panel: Panel, across: Any) -> None:
        points = Points(in_order(panel.rows, panel.rows))
        draw_bars(panel, points, self.column, self.change)
        write_over_panel(panel.axes, self.change.count(points, self.column))


def draw_bars(panel: Panel, points: Points, column: str, change: Change) -> None:
    """Draw the change of a column over each block with a value before and after it."""
    ends = points.frame["depth"]
    for block, values in enumerate(change.find(points, column).T):
        if np.isfinite(values[0]):
            place = ends[block : block + 2].to_numpy()
            _draw_bar(panel, points.frame.iloc[block + 1], place, values)
    panel.axes.axhline(0, **ZERO, zorder=2.5)


def _draw_bar(panel: Panel, block: pd.Series, place: Array, values: Array) -> None:
    """Draw the change over a block and its interval; hatch it if the block subsamples."""
    middle, width = place.mean(), _WIDTH * np.ptp(place)
    looks = {LABELS_OF_KINDS[block["kind"]]: {"facecolor": KIND_COLORS[block["kind"]], **KIND_EDGE}}
    if block["subsampling"]:
        looks[LABELS_OF_KINDS["subsampling"]] = SUBSAMPLING_HATCH
    for order, (label, look) in enumerate(looks.items()):
        panel.axes.bar(middle, values[0], width, **look, zorder=2 + order / 10)
        panel.legend.add(label, Patch(**look))
    interval = resampled_interval(values[1:]) if len(values) > 1 else None
    if interval:
        panel.axes.vlines(middle, *interval, **INTERVAL_ON_BAR, zorder=3)
        panel.legend.add_marker(INTERVAL, {**INTERVAL_BAR, "color": INTERVAL_ON_BAR["color"]})
