"""Spectra of tokens and of pooled images, a curve for each cut point."""

from collections.abc import Mapping, Sequence
from math import log

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import depth_color
from vitscope.drawing.rows import rows_of
from vitscope.measures.singular_values.table import FLOOR, IMAGES, TOKENS

_CURVE_WIDTH = 0.8
_LABELS = {TOKENS: "log(σᵢ / σ₁) of tokens", IMAGES: "log(σᵢ / σ₁) of images"}


def _draw(axes: Axes, points: pd.DataFrame) -> None:
    for row in points.to_dict("records"):
        ratios = np.asarray(row["log_ratios"], np.float64)
        above = ratios[ratios > log(FLOOR)]
        if len(above):
            numbers = range(1, len(above) + 1)
            axes.plot(numbers, above, color=depth_color(row["depth"]), lw=_CURVE_WIDTH)
    axes.set_xlim(1, max(2, points["most"].max()))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=2))


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw two panels per model: the spectra of its tokens, and below those of its images.

    All panels side by side have one scale. Curves end where singular values are round-off.
    """
    rows = layout.stacked_panels(len(members), 2)
    for panels, of in zip(rows, _LABELS, strict=True):
        for axes, member in zip(panels.axes, members, strict=True):
            points = rows_of("singular_values", table, member.model, ["index"])
            _draw(axes, points[points["of"] == of])
        layout.share_scale(panels.axes)
    for axes, member in zip(rows[0].axes, members, strict=True):
        axes.set_title(member.label)
    layout.depth_bar(rows[0].figure, [axes for panels in rows for axes in panels.axes])
    rows[0].label("", _LABELS[TOKENS])
    rows[1].label("Singular value i", _LABELS[IMAGES])
    return rows[0].figure
