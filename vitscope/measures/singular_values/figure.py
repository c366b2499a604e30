"""Spectra of tokens and of pooled images, and their effective rank by depth."""

from collections.abc import Sequence
from math import log

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import begin_at_zero, depth_bar, share_scale
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import DOTTED, GRAY, THIN, curve_of_depth
from vitscope.drawing.panels import Panel, make_panels, stack_panels
from vitscope.measures.singular_values.measure import FLOOR, IMAGES, TOKENS

_LABELS = {TOKENS: "log(σᵢ / σ₁) of tokens", IMAGES: "log(σᵢ / σ₁) of images"}


def _draw_spectra(axes: Axes, points: pd.DataFrame) -> None:
    for row in points.to_dict("records"):
        ratios = np.asarray(row["log_ratios"], np.float64)
        above = ratios[ratios > log(FLOOR)]
        if len(above):
            axes.plot(range(1, len(above) + 1), above, **curve_of_depth(row["depth"]))
    axes.set_xlim(1, max(2, points["most"].max()))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=2))


def plot_singular_values(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw two panels per model: the spectra of its tokens, and below of its images.

    All panels side by side have one scale. Curves end where singular values are round-off.
    """
    upper, lower = stack_panels(len(members), 2)
    for panels, of in ((upper, TOKENS), (lower, IMAGES)):
        for panel in panels.of_models(members, table[table["of"] == of]):
            _draw_spectra(panel.axes, panel.rows)
        share_scale(panels.axes)
    depth_bar([*upper.axes, *lower.axes])
    upper.label("", _LABELS[TOKENS])
    return lower.finish("Singular value i", _LABELS[IMAGES])


_MOST = {"color": GRAY, **DOTTED}


def _draw_rank(panel: Panel, tokens: pd.DataFrame, images: pd.DataFrame) -> None:
    look = panel.look
    panel.draw_bands(tokens)
    panel.axes.plot(tokens["depth"], tokens["most"], **_MOST, zorder=2)
    panel.axes.plot(
        images["depth"], images["effective_rank"], **look.hollow, lw=THIN, clip_on=False
    )
    panel.legend.add_marker("tokens of an image", look.line, look)
    panel.legend.add_marker("means of images", look.hollow, look)
    panel.legend.add_line("largest possible of tokens", _MOST)
    panel.draw_points(tokens, "effective_rank")


def plot_effective_rank(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: the effective rank of tokens and of images by depth."""
    panels = make_panels(len(members))
    for panel in panels.of_models(members, table):
        rows = panel.rows
        tokens, images = (rows[rows["of"] == of].reset_index(drop=True) for of in (TOKENS, IMAGES))
        _draw_rank(panel, tokens, images)
        begin_at_zero(panel.axes)
    return panels.finish("Normalized depth", "Effective rank")
