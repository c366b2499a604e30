"""The confidence of intervals, and the columns of tables that claims take intervals from."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
# The percentiles at the ends of an interval of this confidence.
TAILS = (2.5, 97.5)
# Besides a value, tables keep a list of its values in this many resamples of the images. Models
# with equally many images share resamples.
KEPT = 400
# The ending of the columns with these lists, from which claims take their intervals.
RESAMPLED = "_resampled"


def without_resamples(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Drop the columns of values in resamples, which only claims need."""
    return frame[[name for name in frame if not str(name).endswith(RESAMPLED)]]
