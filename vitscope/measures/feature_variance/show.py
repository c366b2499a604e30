from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from vitscope.claims.claim import SPECIFIC, Claim, Evidence, ScoredCurve, every_model, in_order
from vitscope.claims.points import Points
from vitscope.claims.statistics import HALF, Found, falls
from vitscope.drawing.axes import begin_at_zero, color_bar, in_percent
from vitscope.drawing.charts import Chart, Rows, Steps, Theirs
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import PLAIN, SHARE_STYLES, ZERO, depth_colors, look_of
from vitscope.drawing.panels import Panel, stack_panels
from vitscope.measures.fourier.show import CLAIMS_FOURIER, MapValue

_VALUE = MapValue("variance", "variance", "feature map variance")
_FIG_9 = "The paper's Fig. 9 and D.1."
CLAIMS_FEATURE_VARIANCE = Evidence(
    "feature_variance",
    (
        *_VALUE.of_blocks("Fig. 9", _FIG_9),
        Claim(
            "subsampling_reduces_variance",
            "Subsampling reduces the feature map variance",
            "Fig. 9",
            every_model,
            falls(None, _VALUE.column, _VALUE.words),
            _FIG_9,
        ),
        _VALUE.of_attention("after Fig. 9", SPECIFIC, log=True),
        _VALUE.of_averaging("reduce the variance of feature maps"),
    ),
    in_order,
    curve=ScoredCurve("depth", "variance", log=True),
)

_WHY = (
    "Not in the paper, whose Fig. 9 has the variance itself, which follows the scale of the "
    "residual stream; the share is that of all variance of the feature maps that is within "
    "images, over space."
)
CLAIMS_SPATIAL_SHARE = CLAIMS_VARIANCE_AND_SHARE = Evidence(
    "spatial_share",
    MapValue("share", "share", "share within images").of_blocks("after Fig. 9", _WHY),
    in_order,
)


# Label what is counted at each epoch, by the kind of blocks.
_LABELS = {"msa": "MSAs that lower it", "mlp": "MLPs that raise it", "conv": "Convs that raise it"}

# Name the claim about each kind of blocks.
_VERBS = {"msa": "msa_reduces", "mlp": "mlp_increases", "conv": "conv_increases"}


class _Counted(NamedTuple):
    """A row of panels: the claims on a value, one per kind of blocks, and the table they count."""

    label: str
    evidence: Evidence
    value: str
    table: pd.DataFrame


# Epochs lie far apart at the end of a training and close together at its start, with an epoch 0.
_SCALE: dict[str, Any] = {"value": "symlog", "linthresh": 1, "linscale": 0.5}

_VARIANCE, _SHARE = "Feature map variance", "Share within images"
_OF_BOTH = Theirs("variance", "variance"), Steps("variance")
plot_feature_variance = Chart(Rows(_VARIANCE, *_OF_BOTH, scale=begin_at_zero))
_OF_SHARES = Rows(_SHARE, Steps("share"), scales="shared")
plot_spatial_share = Chart(_OF_SHARES)
plot_variance_and_share = Chart(
    Rows(_VARIANCE, *_OF_BOTH, table=1, scale=begin_at_zero, says_across=True), _OF_SHARES
)


def plot_variance_by_epoch(
    variance: pd.DataFrame, fourier: pd.DataFrame, members: Members
) -> Figure:
    """Draw a column per model: its variance by depth at each epoch, and shares of its blocks."""
    counted = (
        _Counted("variance", CLAIMS_FEATURE_VARIANCE, "variance", variance),
        _Counted("high frequencies", CLAIMS_FOURIER, "high_frequency", fourier),
    )
    # The variance grows by orders of magnitude while a network learns.
    return _draw_epochs("variance", _VARIANCE, "log", counted, members)


def plot_share_by_epoch(share: pd.DataFrame, members: Members) -> Figure:
    """Draw a column per model: its share within images at each epoch, and shares of its blocks."""
    counted = (_Counted("share within images", CLAIMS_SPATIAL_SHARE, "share", share),)
    return _draw_epochs("share", _SHARE, "linear", counted, members)


def _draw_epochs(
    value: str, label: str, scale: str, counted: Sequence[_Counted], members: Members
) -> Figure:
    """Draw the curves of the table that is counted first, and below them what is counted."""
    models = [[*moments] for _, moments in groupby(members, _model_of)]
    upper, *lower = stack_panels(len(models), 1 + len(counted))
    legend = upper.legend
    for axes, moments in zip(upper.axes, models, strict=True):
        axes.set_title(_model_of(moments[0]))
        _draw_curves(axes, counted[0].table, value, moments, legend)
        axes.set_yscale(scale)
        if scale == "log":
            _label_decades(axes)
        _epoch_bar(axes, moments)
    upper.label("Normalized depth", label, "own" if scale == "log" else "shared")
    for panels, shares in zip(lower, counted, strict=True):
        below = f"Blocks that do so:\n{shares.label}"
        for axes, moments in zip(panels.axes, models, strict=True):
            rows = [rows_of(shares.table, member.model) for member in moments]
            panel = Panel(axes, look_of(moments[0]), legend, pd.concat(rows))
            _draw_shares(panel, shares, rows, [float(member.epoch or 0) for member in moments])
        panels.label("", below)
    return lower[-1].finish("Epoch", below)


def _label_decades(axes: Axes) -> None:
    """Label a logarithmic axis with plain numbers: within two decades, 2 and 5 of each as well."""
    low, high = axes.get_ylim()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}" if high < 100 * low else NullFormatter())
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))


def _model_of(member: Member) -> str:
    return member.label.removesuffix(f", epoch {member.epoch}")


def _draw_curves(
    axes: Axes, table: pd.DataFrame, value: str, moments: Members, legend: Legend
) -> None:
    colors = depth_colors().resampled(len(moments))
    for number, member in enumerate(moments):
        points = rows_of(table, member.model, ["index"])
        axes.plot(points["depth"], points[value], **PLAIN, color=colors(number))
    Panel(axes, look_of(member), legend, points).draw_bands(points)


def _epoch_bar(axes: Axes, moments: Members) -> None:
    count = len(moments)
    colors = depth_colors().resampled(count)
    scale = ScalarMappable(BoundaryNorm(np.arange(count + 1), count), colors)
    bar = color_bar([axes], scale, "Epoch", pad=0.03, aspect=14)
    bar.set_ticks([n + 0.5 for n in range(count)], labels=[str(member.epoch) for member in moments])
    bar.ax.tick_params(which="both", length=0)


def _draw_shares(
    panel: Panel, shares: _Counted, rows: Sequence[pd.DataFrame], epochs: Sequence[float]
) -> None:
    evidence, axes = shares.evidence, panel.axes
    claims = {claim.name: claim for claim in evidence.claims}
    measured = [Points(evidence.measured(each, each)) for each in rows]
    for kind, verb in _VERBS.items():
        found = [claims[f"{verb}_{shares.value}"].find(each) for each in measured]
        findings = [finding for finding in found if finding]
        if len(findings) == len(epochs):
            _draw_share(panel, pd.Series(epochs), findings, kind)
    axes.axhline(HALF, **ZERO, zorder=0)
    axes.set_xscale(**_SCALE)
    axes.set_xlim(-0.15, max(epochs) * 1.15)
    axes.xaxis.set_major_locator(FixedLocator(epochs))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(-0.04, 1.04)
    in_percent(axes)


def _draw_share(panel: Panel, epochs: pd.Series, shares: Sequence[Found], kind: str) -> None:
    style = SHARE_STYLES[kind]
    panel.legend.add_line(_LABELS[kind], style)
    if all(each.interval for each in shares):
        low, high = (pd.Series(ends) for ends in zip(*(f.interval for f in shares), strict=True))
        panel.draw_interval(epochs, low, high, style["color"])
    panel.draw_curve(epochs, pd.Series([each.value for each in shares]), **style)
