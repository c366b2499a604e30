"""What tokens know of their place and of the pixels there, and whether outliers know less.

The table `probe_tokens`: two rows per model and cut point, of its position and of its pixels.

A token is the vector of all channels at one position of a feature map; some are drawn of each
image (`analysis.probe.tokens`). Position is the row and the column of its middle. Pixels are what
the network is shown in its cell of the image, as 4 x 4 means of each colour, or as many as there
are. Both are read by ridge regression as classes are in `probe`, in five folds of images; the
penalty is chosen by the squared error. Tokens are scaled to one norm before, so that outliers are
not misread for their length alone.

`r2` is the share of the squared deviations that is read: 1 minus the squared errors over the
squared distances to the mean of the images that the probe was fitted on. It is 0 where nothing is
read, and below 0 where a probe misleads; it is null for the position in a map of one. An outlier is
a token whose norm is more than `token_norms.threshold` times the median of its image; where fewer
than ten images have one among the drawn tokens, nothing is said of outliers.
"""

from functools import partial

from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    Merge,
    bootstrap,
    refuse_fewer,
)
from vitscope.measures.probe.measure import FOLDS, Settings
from vitscope.measures.token_norms.measure import Settings as NormSettings

TABLE = Table(
    "probe_tokens",
    {
        **AT_CUT_POINT,
        "tokens": ("int64", "number of tokens"),
        "target": ("string", "what is read: position or pixels"),
        "r2": ("float64", "share of the squared deviations that is read"),
        **interval_columns(),
        "outliers": ("int64", "number of tokens that are outliers"),
        "r2_outliers": ("float64", "the same share among outliers; null if these are few"),
        "difference": ("float64", "the share among other tokens minus the one among outliers"),
        **interval_columns(name="difference"),
        **resampled_column("difference"),
        "penalty": ("float64", "median of the chosen penalties, each for a token"),
    },
)


def _merging(case: Case) -> Given:
    norms = case.study.section("token_norms", NormSettings)
    return {"threshold": norms.threshold} | bootstrap(case)


PROBE_TOKENS = Measure(
    needs="parts",
    table=TABLE,
    parts_of="probe",
    question="What becomes of tokens",
    figures={"probe_tokens": FigureKind()},
    settings_of=("probe", Settings),
    merge=Merge(_merging, at_cut_points=True),
    refuse=partial(refuse_fewer, least=FOLDS),
)
