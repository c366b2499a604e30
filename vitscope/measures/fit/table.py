"""The table `fit`: two rows per model.

The error is that of the predictions of `analysis.split`, of `analysis.classification.images`
images. The NLL is the mean of the cross entropy with the mixed and smoothed targets of
`analysis.fit.images` augmented images, in evaluation mode and in float32; at best it is the entropy
of these targets. [figures.md](figures.md#fit) says which images these are.
"""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "fit",
    {
        "model": (pa.string(), "model, as the study names it"),
        "metric": (pa.string(), "error_percent on test images, or nll_train on augmented ones"),
        "images": (pa.int64(), "number of images"),
        "value": (pa.float64(), "share whose class is not found, in percent; or the mean NLL"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval; null for nll_train"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval; null for nll_train"),
    },
)
