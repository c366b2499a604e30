"""The confidence of intervals, and the columns of tables that claims take intervals from."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE = 0.95
# The percentiles between which a share CONFIDENCE lies.
TAILS = (2.5, 97.5)
# Tables keep the values in the first resamples of the images as a list, in a column with this
# ending: claims take their intervals from it. Models with equally many images share resamples.
KEPT, RESAMPLED = 400, "_resampled"


def without_resamples(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Drop the values in resamples from a table: claims need them, readers do not."""
    return frame[[name for name in frame if not str(name).endswith(RESAMPLED)]]
