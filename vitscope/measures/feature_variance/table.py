"""The table `feature_variance`: one row per model and cut point, of all models that figures show.

Figures are drawn from the same rows, one file per model, in
`results/{study}/feature_variance/{model}.parquet`.

The variance is unbiased, over the positions of a feature map; a map with one position has none, and
its value is null. A cut point is a place on the residual stream, [networks.md](networks.md).

A part has one row per cut point and image of a shard.
"""

from vitscope.files.tables import Table
from vitscope.networks.finding.cut_point_columns import CUT_POINT

TABLE = Table(
    "feature_variance",
    {
        **CUT_POINT,
        "images": ("int64", "number of images"),
        "variance": ("float64", "variance over space, mean over channels and images"),
        "ci_low": ("float64", "lower end of the 95 % bootstrap interval over images"),
        "ci_high": ("float64", "upper end of the 95 % bootstrap interval over images"),
    },
)

PART = Table(
    "variance_per_image",
    {
        "index": ("int32", "position of the cut point, 0 for the stem"),
        "image": ("int64", "position of the image among those that are measured"),
        "variance": ("float64", "variance over space, mean over channels"),
    },
)
