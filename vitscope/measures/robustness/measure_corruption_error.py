"""The error on corrupted images by corruption, from the parts of `robustness`.

The table `corruption_error`: one row per model and corruption, and one for their mean.

The row `mean` has the mean corruption error: the mean of `error` over corruptions, each a mean over
the severities that were measured. It is not divided by the error of AlexNet.
"""

from vitscope.files.tables import Table
from vitscope.measures.measure import Measure

TABLE = Table(
    "corruption_error",
    {
        "model": ("string", "model, as the study names it"),
        "corruption": ("string", "name of the corruption; mean for the mean of all"),
        "images": ("int64", "number of images"),
        "clean_error": ("float64", "share of wrong predictions on images as they are"),
        "error": ("float64", "share of wrong predictions, mean over severities"),
        "relative_error": ("float64", "error minus clean_error"),
    },
)


MEASURE = Measure(needs="parts", parts_of="robustness")
