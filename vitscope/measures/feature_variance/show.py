import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.changes import Change
from vitscope.drawing.charts import Chart, Curve, PublishedPoints, Rows, Steps
from vitscope.drawing.epochs import SharesByEpoch, ValueByEpoch, plot_by_epoch
from vitscope.drawing.figure import Members
from vitscope.measures.components import COMPONENT, ends_of_models

_VARIANCE = "Feature map variance"
CHANGE_OF_VARIANCE = Change("Change of variance (%)", ratio=True, linear=1)
_OF_BOTH = PublishedPoints("variance"), Steps("variance", change=CHANGE_OF_VARIANCE)
plot_feature_variance = Chart(Rows(_VARIANCE, *_OF_BOTH, scale=begin_at_zero, grows=True))
_OF_NORMALIZED = Steps(
    "normalized_variance",
    change=Change("Change of\nnormalized variance (%)", ratio=True, linear=1),
)
plot_normalized_variance = Chart(Rows("Normalized variance", _OF_NORMALIZED, scale=begin_at_zero))
_OF_SHARE = Steps(
    "share", change=Change("Change of\nshare within images (%)", ratio=True, linear=1)
)
_OF_SHARES = Rows("Share within images", _OF_SHARE, scales="shared")
plot_spatial_share = Chart(_OF_SHARES)
plot_variance_and_share = Chart(
    Rows(_VARIANCE, *_OF_BOTH, table=1, scale=begin_at_zero, says_across=True), _OF_SHARES
)
_OF_TOTAL = Curve("total", change=Change("Change of\ntotal variance (%)", ratio=True, linear=1))
CHANGE_OF_ENDS = Change("Change of\nhigh frequencies", linear=0.1)
_OF_ENDS = Curve(COMPONENT, change=CHANGE_OF_ENDS)
_WITHOUT_SCALE = Chart(
    Rows("", _OF_BOTH[1], table=1),
    Rows("", _OF_TOTAL, table=2),
    Rows("", _OF_SHARE, table=2),
    Rows("", _OF_NORMALIZED),
    Rows("", _OF_ENDS, table=3),
).of_changes()


def plot_without_scale(
    normalized: pd.DataFrame,
    variance: pd.DataFrame,
    share: pd.DataFrame,
    fourier: pd.DataFrame,
    members: Members,
    by_epoch: bool = False,
) -> Figure:
    """Draw the change of the variance over each block, its two factors, and what has no scale.

    Models after several epochs have a column each, as any others.
    """
    tables = normalized, variance, share, ends_of_models(fourier, members)
    return _WITHOUT_SCALE(*tables, members=members)


def plot_variance_by_epoch(
    variance: pd.DataFrame, fourier: pd.DataFrame, members: Members
) -> Figure:
    """Draw the variance by epoch, and below shares of blocks by two values that they change."""
    ends = ends_of_models(fourier, members)
    shares = [
        SharesByEpoch(variance, "variance", CHANGE_OF_VARIANCE),
        SharesByEpoch(ends, COMPONENT, CHANGE_OF_ENDS),
    ]
    value = ValueByEpoch(_VARIANCE, variance, "variance", "own", logarithmic=True)
    return plot_by_epoch(value, shares, members)
