import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.changes import Change
from vitscope.drawing.charts import Chart, Rows, Steps, Theirs
from vitscope.drawing.epochs import SharesByEpoch, ValueByEpoch, plot_by_epoch
from vitscope.drawing.figure import Members, rows_of
from vitscope.measures.components import COMPONENT, diagonals, ends_of_curves

_VARIANCE = "Feature map variance"
CHANGE_OF_VARIANCE = Change("Change of variance (%)", ratio=True, linear=1)
_OF_BOTH = Theirs("variance"), Steps("variance", change=CHANGE_OF_VARIANCE)
plot_feature_variance = Chart(Rows(_VARIANCE, *_OF_BOTH, scale=begin_at_zero, grows=True))
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
    "Share within images",
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
    """Draw the variance by epoch, and below shares of blocks by two values that they change."""
    curves = diagonals(fourier)
    ends = pd.concat(ends_of_curves(rows_of(curves, member.model)) for member in members)
    shares = [
        SharesByEpoch(variance, "variance", CHANGE_OF_VARIANCE),
        SharesByEpoch(ends, COMPONENT, Change("Change of\nhigh frequencies")),
    ]
    value = ValueByEpoch(_VARIANCE, variance, "variance", "own", logarithmic=True)
    return plot_by_epoch(value, shares, members)
