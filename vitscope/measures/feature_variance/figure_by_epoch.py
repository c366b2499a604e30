"""Variance by depth at several epochs, and when blocks begin to do what the paper says of them."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, Colormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from vitscope.claims.chance import share_interval
from vitscope.claims.claim import HALF, Finding
from vitscope.claims.depth_bands import Band, bands
from vitscope.claims.evidence import Evidence
from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.bands import band_entries, draw_bands
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend
from vitscope.drawing.looks import KIND_COLORS, ZERO, depth_colors
from vitscope.drawing.rows import rows_of
from vitscope.measures.feature_variance.claims import CLAIMS as OF_VARIANCE
from vitscope.measures.fourier.claims import CLAIMS as OF_FREQUENCY

# What is counted at each epoch, by the names of claims: what it is called, and how it is drawn.
_COUNTED: dict[str, tuple[str, dict[str, Any]]] = {
    "msa": ("MSAs that lower it", {"color": KIND_COLORS["msa"], "marker": "o"}),
    "mlp": ("MLPs that raise it", {"color": KIND_COLORS["mlp"], "marker": "v"}),
    "conv": ("Convs that raise it", {"color": KIND_COLORS["conv"], "marker": "D"}),
}
_SHARES: tuple[tuple[str, Evidence, dict[str, str]], ...] = (
    (
        "Share, by variance",
        OF_VARIANCE["feature_variance"],
        {
            "msa": "msa_reduces_variance",
            "mlp": "mlp_increases_variance",
            "conv": "conv_increases_variance",
        },
    ),
    (
        "Share, by high frequencies",
        OF_FREQUENCY["fourier_depth"],
        {
            "msa": "msa_reduces_high_frequency",
            "mlp": "mlp_increases_high_frequency",
            "conv": "conv_increases_high_frequency",
        },
    ),
)
_INTERVAL_ALPHA = 0.15
# Epochs are wide apart at the end of a training and close at its begin, and there is an epoch 0.
_SCALE: dict[str, Any] = {"value": "symlog", "linthresh": 1, "linscale": 0.5}


def plot(
    variance: pd.DataFrame,
    fourier: pd.DataFrame,
    members: Sequence[Member],
    _published: Mapping[str, Published],
) -> Figure:
    """Draw a column per model: its variance by depth at each epoch, and shares of its blocks."""
    models = [[*moments] for _, moments in groupby(members, _model_of)]
    rows = layout.stacked_panels(len(models), 1 + len(_SHARES))
    shown: list[Band] = []
    for number, moments in enumerate(models):
        axes = rows[0].axes[number]
        axes.set_title(_model_of(moments[0]))
        shown += _draw_curves(axes, variance, moments)
        _epoch_bar(axes, moments)
    counted: dict[str, Any] = {}
    for panels, (_, evidence, names), table in zip(
        rows[1:], _SHARES, (variance, fourier), strict=True
    ):
        for number, moments in enumerate(models):
            of = [rows_of(evidence.table.name, table, member.model) for member in moments]
            counted |= _draw_shares(panels.axes[number], evidence, names, of, moments)
    rows[0].label("Normalized depth", "Feature map variance")
    for panels, (label, _, _) in zip(rows[1:], _SHARES, strict=True):
        panels.label("Epoch" if panels is rows[-1] else "", label)
    legend(rows[-1], counted | band_entries(shown))
    return rows[-1].figure


def _model_of(member: Member) -> str:
    """Return what to call the model of a moment."""
    return member.label.removesuffix(f", epoch {member.epoch}")


def _colors(count: int) -> Colormap:
    return depth_colors().resampled(count)


def _draw_curves(axes: Axes, variance: pd.DataFrame, moments: Sequence[Member]) -> list[Band]:
    """Draw a curve for each moment; return the bands of the blocks, which are those of all."""
    colors = _colors(len(moments))
    for number, member in enumerate(moments):
        points = rows_of("feature_variance", variance, member.model, ["index"])
        axes.plot(points["depth"], points["variance"], color=colors(number), marker="", lw=1)
    shown = bands(points)
    draw_bands(axes, shown)
    axes.set_xlim(0, 1)
    # From a network that has learned nothing to one that has, it grows by orders of magnitude.
    axes.set_yscale("log")
    return shown


def _epoch_bar(axes: Axes, moments: Sequence[Member]) -> None:
    count = len(moments)
    scale = ScalarMappable(BoundaryNorm(np.arange(count + 1), count), _colors(count))
    bar = axes.figure.colorbar(scale, ax=axes, pad=0.03, aspect=14)
    bar.set_ticks([n + 0.5 for n in range(count)], labels=[str(member.epoch) for member in moments])
    bar.ax.tick_params(which="both", length=0)
    bar.set_label("Epoch")
    layout.without_edges(bar)


def _draw_shares(
    axes: Axes,
    evidence: Evidence,
    names: Mapping[str, str],
    points: Sequence[pd.DataFrame],
    moments: Sequence[Member],
) -> dict[str, Any]:
    """Draw the share of each kind of blocks that do as claimed, by epoch; return their entries."""
    epochs = np.array([member.epoch for member in moments], float)
    claims = {claim.name: claim for claim in evidence.claims}
    measured = [evidence.measured(rows, rows) for rows in points]
    entries = {}
    for kind, name in names.items():
        found = [claims[name].find(rows) for rows in measured]
        shares = [finding for finding in found if finding]
        if len(shares) == len(epochs):
            text, style = _COUNTED[kind]
            _draw_share(axes, epochs, shares, style)
            entries[text] = Line2D([], [], lw=1, ms=3.5, **style)
    axes.axhline(HALF, **ZERO, zorder=0)
    axes.set_xscale(**_SCALE)
    axes.set_xlim(-0.15, epochs.max() * 1.15)
    axes.xaxis.set_major_locator(FixedLocator(epochs.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(-0.04, 1.04)
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    return entries


def _draw_share(
    axes: Axes, epochs: npt.NDArray[np.float64], shares: Sequence[Finding], style: Mapping[str, Any]
) -> None:
    intervals = [share_interval(each.count or 0, each.total or 0) for each in shares]
    low, high = zip(*intervals, strict=True)
    axes.fill_between(epochs, low, high, color=style["color"], alpha=_INTERVAL_ALPHA, lw=0)
    values = [each.value for each in shares]
    axes.plot(epochs, values, **style, lw=1, ms=3.5, clip_on=False, zorder=3)
