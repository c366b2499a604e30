"""The table `fit`: two rows per model.

The error is measured on `analysis.classification.images` images of `analysis.split`. The NLL is the
mean cross entropy with the mixed and smoothed targets of `analysis.fit.images` augmented images, in
evaluation mode and in float32; at best it is the entropy of these targets.
[figures.md](figures.md#fit) says which images these are.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "fit",
    {
        "model": ("string", "model, as the study names it"),
        "metric": ("string", "error_percent on test images, or nll_train on augmented ones"),
        "images": ("int64", "number of images"),
        "value": ("float64", "share of wrong predictions, in percent; or the mean NLL"),
        "ci_low": ("float64", "lower end of the 95 % bootstrap interval; null for nll_train"),
        "ci_high": ("float64", "upper end of the 95 % bootstrap interval; null for nll_train"),
    },
)
