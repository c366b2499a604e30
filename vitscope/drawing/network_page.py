"""A page about one network: panels of values by depth, one below the other, and verdicts."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from textwrap import fill, wrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.scale import SymmetricalLogTransform
from matplotlib.ticker import MaxNLocator, NullLocator

from vitscope.claims.verdicts import say_how_many
from vitscope.drawing.counts import count_of_panel
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import (
    GRAY,
    KIND_COLORS,
    KIND_EDGE,
    LABELS_OF_KINDS,
    VERDICT_LOOKS,
)
from vitscope.drawing.network import kinds_of
from vitscope.drawing.notes import write_count_over_panel
from vitscope.drawing.verdicts_page import Mark, Said, height_of_claims, write_columns_of_claims

# Inches.
_WIDTH = 5.5  # the page
_STRIP = 0.16  # the strip of blocks
_PANEL = 0.95
_EDGES = 0.7  # labels at the edges
_LEFT = 0.15  # from the edge of the page to its claims

_LETTERS = 52  # per line of a claim
_LETTERS_OF_LABEL = 16  # per line of a label
_TICKS = 5  # at most, on the scale of a panel, above its lowest one
_LEAST_APART = 0.18  # of the height of a panel, between the labels of two ticks
_SMALL = 6.5  # the size of labels in points

# Draws a figure of the network, of some kind, in the given axes.
Draw = Callable[[Axes], object]


def plot_network_page(
    label: str,
    blocks: pd.DataFrame,
    panels: Sequence[Draw],
    claims: pd.DataFrame,
    read: str | None,
) -> Figure:
    """Draw the strip of the blocks, a panel for each kind of figure, a legend, and the verdicts.

    `read` says how much of the network the blocks are, if that is known.
    """
    found = _verdicts_on_network_page(claims)
    half = -(-len(found) // 2)
    columns = found[:half], found[half:]
    rows = [_STRIP, *[_PANEL] * len(panels)]
    # The verdicts have a part of their own, which the layout of the panels leaves alone.
    parts = sum(rows) + _EDGES, max(map(height_of_claims, columns))
    figure = Figure(figsize=(_WIDTH, sum(parts)))
    (above,), (verdicts,) = figure.subfigures(2, 1, squeeze=False, height_ratios=parts)
    (strip,), *others = above.subplots(len(rows), 1, squeeze=False, height_ratios=rows)
    below = [axes for (axes,) in others]
    points = blocks.sort_values("index", ignore_index=True)
    legend = Legend()
    _draw_strip_on_network_page(strip, points, legend)
    strip.set_title(label, pad=14 if read else None)
    if read:
        over = {"xycoords": "axes fraction", "xytext": (0, 5), "textcoords": "offset points"}
        strip.annotate(f"read: {read}", (0.5, 1), **over, ha="center", fontsize=_SMALL, color=GRAY)
    for axes, draw in zip(below, panels, strict=True):
        draw(axes)
        axes.set_title("")
        write_count_over_panel(axes, count_of_panel(axes))
        axes.set_ylabel(fill(axes.get_ylabel(), _LETTERS_OF_LABEL), fontsize=_SMALL)
        _thin_ticks_of_panel(axes)
        axes.sharex(strip)
        if axes is not below[-1]:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
        if own := axes.get_legend():
            for text, handle in zip(own.get_texts(), own.legend_handles, strict=True):
                legend.add(text.get_text(), handle)
            own.remove()
    above.align_ylabels()
    legend.draw(above)
    write_columns_of_claims(verdicts, columns, _LEFT, _WIDTH)
    return figure


def _thin_ticks_of_panel(axes: Axes) -> None:
    """Keep the ticks of a flat panel apart, and so their labels."""
    axis, to_place = axes.yaxis, axes.yaxis.get_transform()
    if axes.get_yscale() == "linear":
        axis.set_major_locator(MaxNLocator(_TICKS, steps=[1, 2, 5, 10]))
    elif isinstance(to_place, SymmetricalLogTransform):
        axis.set_minor_locator(NullLocator())
        limits, linear = axes.get_ylim(), to_place.linthresh
        low, high, end = to_place.transform([*limits, linear])
        if end < _LEAST_APART * (high - low):
            # The ends of the linear part are too near to zero.
            axis.set_ticks([at for at in axes.get_yticks() if abs(at) != linear])
            axes.set_ylim(limits)


def _draw_strip_on_network_page(axes: Axes, points: pd.DataFrame, legend: Legend) -> None:
    kinds, ends = kinds_of(points)[1:], points["depth"].tolist()
    for kind, (start, end) in zip(kinds, pairwise(ends), strict=True):
        axes.barh(0, end - start, left=start, height=1, color=KIND_COLORS[kind], **KIND_EDGE)
        legend.add(LABELS_OF_KINDS[kind], Patch(facecolor=KIND_COLORS[kind], **KIND_EDGE))
    axes.set(xlim=(0, 1), ylim=(-0.5, 0.5), yticks=[])
    axes.tick_params(labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("blocks", rotation=0, ha="right", va="center", color=GRAY)


def _verdicts_on_network_page(claims: pd.DataFrame) -> list[Said]:
    known = claims[claims["holds"].isin([*VERDICT_LOOKS])]
    return [
        ([Mark(row["holds"], "")], wrap(f"{row['statement']}{say_how_many(row)}", _LETTERS))
        for row in known.to_dict("records")
    ]
