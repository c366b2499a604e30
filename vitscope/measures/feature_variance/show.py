from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from vitscope.claims.claim import Evidence, every_model, make_claims
from vitscope.claims.points import Points
from vitscope.claims.statistics import HALF, Found
from vitscope.drawing.axes import begin_at_zero, color_bar, in_percent, label_decades
from vitscope.drawing.changes import Change
from vitscope.drawing.charts import Chart, Rows, Steps, Theirs
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import PLAIN, SHARE_STYLES, ZERO, depth_colors, look_of
from vitscope.drawing.panels import Panel, stack_panels
from vitscope.measures.components import OF_BLOCKS, components_of_blocks
from vitscope.measures.feature_variance.claims import CLAIMS_FEATURE_VARIANCE, CLAIMS_SPATIAL_SHARE

# The legend labels of the counted blocks, by kind.
_LABELS = {"msa": "MSAs that lower it", "mlp": "MLPs that raise it", "conv": "Convs that raise it"}

# The beginnings of the names of claims, by kind of blocks.
_VERBS = {"msa": "msa_reduces", "mlp": "mlp_increases", "conv": "conv_increases"}


class _Shares(NamedTuple):
    """Describes a row of panels: the shares of blocks that change a value as claimed.

    The claims in `evidence` have names like `msa_reduces_{value}`, one for each kind of blocks.
    """

    label: str
    evidence: Evidence
    value: str


_OF_VARIANCE = _Shares(
    "Share of blocks by\nchange of variance", CLAIMS_FEATURE_VARIANCE, "variance"
)
_OF_FREQUENCY = _Shares(
    "Share of blocks by\nchange of high frequencies",
    Evidence("fourier", make_claims("Fig. 8", every_model, "", *OF_BLOCKS), components_of_blocks),
    "high_frequency",
)
_OF_SHARE = _Shares(
    "Share of blocks by\nchange of share within images", CLAIMS_SPATIAL_SHARE, "share"
)
# The scale of epochs is logarithmic, since more snapshots are kept of early epochs, and linear near
# 0, so that epoch 0 has a place.
_SCALE: dict[str, Any] = {"value": "symlog", "linthresh": 1, "linscale": 0.5}

_VARIANCE, _SHARE = "Feature map variance", "Share within images"
CHANGE_OF_VARIANCE = Change("Change of variance (%)", ratio=True, linear=1)
_OF_BOTH = Theirs("variance"), Steps("variance", change=CHANGE_OF_VARIANCE)
plot_feature_variance = Chart(Rows(_VARIANCE, *_OF_BOTH, scale=begin_at_zero))
plot_normalized_variance = Chart(
    Rows(
        "Normalized variance",
        Steps(
            "normalized_variance",
            change=Change("Change of\nnormalized variance (%)", ratio=True, linear=1),
        ),
        scale=begin_at_zero,
    )
)
_OF_SHARES = Rows(
    _SHARE,
    Steps("share", change=Change("Change of\nshare within images (%)", ratio=True, linear=1)),
    scales="shared",
)
plot_spatial_share = Chart(_OF_SHARES)
plot_variance_and_share = Chart(
    Rows(_VARIANCE, *_OF_BOTH, table=1, scale=begin_at_zero, says_across=True), _OF_SHARES
)


def plot_variance_by_epoch(
    variance: pd.DataFrame, fourier: pd.DataFrame, members: Members
) -> Figure:
    """Draw a column per model: its variance by depth at each epoch, and below, shares of blocks."""
    counted = ((_OF_VARIANCE, variance), (_OF_FREQUENCY, fourier))
    # The variance grows by orders of magnitude while a network learns.
    return _draw_variance_or_share_by_epoch(
        variance, "variance", _VARIANCE, "log", counted, members
    )


def plot_share_by_epoch(share: pd.DataFrame, members: Members) -> Figure:
    """Draw a column per model: its share within images at each epoch, and shares of its blocks."""
    return _draw_variance_or_share_by_epoch(
        share, "share", _SHARE, "linear", ((_OF_SHARE, share),), members
    )


def _draw_variance_or_share_by_epoch(
    curves: pd.DataFrame,
    value: str,
    label: str,
    scale: str,
    counted: Sequence[tuple[_Shares, pd.DataFrame]],
    members: Members,
) -> Figure:
    models = [[*moments] for _, moments in groupby(members, _label_without_epoch)]
    upper, *lower = stack_panels(len(models), 1 + len(counted))
    legend = upper.legend
    for axes, moments in zip(upper.axes, models, strict=True):
        axes.set_title(_label_without_epoch(moments[0]))
        _draw_variance_or_share_curves(axes, curves, value, moments, legend)
        axes.set_yscale(scale)
        if scale == "log":
            label_decades(axes)
        _draw_epoch_bar(axes, moments)
    upper.label("Normalized depth", label, "own" if scale == "log" else "shared")
    for panels, (shares, table) in zip(lower, counted, strict=True):
        for axes, moments in zip(panels.axes, models, strict=True):
            rows = [rows_of(table, member.model) for member in moments]
            panel = Panel(axes, look_of(moments[0]), legend, pd.concat(rows))
            count_rows(panel.rows, axes)
            _draw_block_shares(
                panel, shares, rows, [float(member.epoch or 0) for member in moments]
            )
        panels.label("", shares.label)
    return lower[-1].finish("Epoch", shares.label)


def _label_without_epoch(member: Member) -> str:
    return member.label.removesuffix(f", epoch {member.epoch}")


def _draw_variance_or_share_curves(
    axes: Axes, table: pd.DataFrame, value: str, moments: Members, legend: Legend
) -> None:
    colors = depth_colors().resampled(len(moments))
    for number, member in enumerate(moments):
        points = rows_of(table, member.model, ["index"])
        count_rows(points, axes)
        axes.plot(points["depth"], points[value], **PLAIN, color=colors(number))
    Panel(axes, look_of(member), legend, points).draw_bands(points)


def _draw_epoch_bar(axes: Axes, moments: Members) -> None:
    count = len(moments)
    colors = depth_colors().resampled(count)
    scale = ScalarMappable(BoundaryNorm(np.arange(count + 1), count), colors)
    bar = color_bar([axes], scale, "Epoch", pad=0.03, aspect=14)
    bar.set_ticks([n + 0.5 for n in range(count)], labels=[str(member.epoch) for member in moments])
    bar.ax.tick_params(which="both", length=0)


def _draw_block_shares(
    panel: Panel, shares: _Shares, rows: Sequence[pd.DataFrame], epochs: Sequence[float]
) -> None:
    evidence, axes = shares.evidence, panel.axes
    claims = {claim.name: claim for claim in evidence.claims}
    measured = [Points(evidence.measured(each, each)) for each in rows]
    for kind, verb in _VERBS.items():
        found = [claims[f"{verb}_{shares.value}"].find(each) for each in measured]
        findings = [finding for finding in found if finding]
        if len(findings) == len(epochs):
            _draw_share_of_kind(panel, pd.Series(epochs), findings, kind)
    axes.axhline(HALF, **ZERO, zorder=0)
    axes.set_xscale(**_SCALE)
    axes.set_xlim(-0.15, max(epochs) * 1.15)
    axes.xaxis.set_major_locator(FixedLocator(epochs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(-0.04, 1.04)
    in_percent(axes)


def _draw_share_of_kind(
    panel: Panel, epochs: pd.Series, shares: Sequence[Found], kind: str
) -> None:
    style = SHARE_STYLES[kind]
    panel.legend.add_line(_LABELS[kind], style)
    if all(each.interval for each in shares):
        low, high = (pd.Series(ends) for ends in zip(*(f.interval for f in shares), strict=True))
        panel.draw_interval(epochs, low, high, style["color"])
    panel.draw_curve(epochs, pd.Series([each.value for each in shares]), **style)
