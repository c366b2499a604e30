"""Spectra of tokens and of pooled images, a curve for each cut point."""

from collections.abc import Sequence
from math import log

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing import layout
from vitscope.drawing.axes import depth_bar, share_scale
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import curve_of_depth
from vitscope.measures.singular_values.table import FLOOR, IMAGES, TOKENS

_LABELS = {TOKENS: "log(σᵢ / σ₁) of tokens", IMAGES: "log(σᵢ / σ₁) of images"}


def _draw(axes: Axes, points: pd.DataFrame) -> None:
    for row in points.to_dict("records"):
        ratios = np.asarray(row["log_ratios"], np.float64)
        above = ratios[ratios > log(FLOOR)]
        if len(above):
            axes.plot(range(1, len(above) + 1), above, **curve_of_depth(row["depth"]))
    axes.set_xlim(1, max(2, points["most"].max()))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=2))


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw two panels per model: the spectra of its tokens, and below those of its images.

    All panels side by side have one scale. Curves end where singular values are round-off.
    """
    upper, lower = layout.stacked_panels(len(members), 2)
    for panels, of in ((upper, TOKENS), (lower, IMAGES)):
        for panel in panels.of_models(members, table[table["of"] == of]):
            _draw(panel.axes, panel.rows)
        share_scale(panels.axes)
    depth_bar([*upper.axes, *lower.axes])
    upper.label("", _LABELS[TOKENS])
    return lower.finish("Singular value i", _LABELS[IMAGES])
