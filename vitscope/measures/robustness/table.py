"""The table `robustness`: one row per model, corruption and severity.

The images are the same in all rows of a data set. A score of a severity in the figure is the mean
over corruptions. `results/{study}/robustness/{model}/{part}.parquet` has the same columns, for the
corruptions that one job measured. [data.md](data.md#corrupted-images) describes the corruptions.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "robustness",
    {
        "model": ("string", "model, as the study names it"),
        "corruption": ("string", "name of the corruption; none for images as they are"),
        "severity": ("int32", "1 to 5; 0 for images as they are"),
        "images": ("int64", "number of images"),
        "accuracy": ("float64", "share of the images whose class is found"),
        "nll": ("float64", "negative log-likelihood, mean over images"),
        "ece": ("float64", "expected calibration error, in ten bins of equal width"),
    },
)
