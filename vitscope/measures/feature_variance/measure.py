"""Feature map variance: over space, then its mean over channels and images.

The table `feature_variance`: one row per model and cut point, of all models that figures show.

Figures are drawn from the same rows, one file per model, in
`results/{study}/feature_variance/{model}.parquet`.

The variance is unbiased, over the positions of a feature map; a map with one position has none, and
its value is null. A cut point is a place on the residual stream, [networks.md](networks.md).

A part has one row per cut point and image of a shard.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import mean_columns, per_image_columns
from vitscope.measures.measure import BY_DEPTH, ByDepth, FigureKind, Measure, mean_over_images

TABLE = Table(
    "feature_variance",
    mean_columns("variance", "variance over space, mean over channels and images"),
)
PART = Table(
    "variance_per_image", per_image_columns("variance", "variance over space, mean over channels")
)


FEATURE_VARIANCE = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="What blocks do to feature maps",
    figures={
        "feature_variance": FigureKind(
            published=BY_DEPTH | {"variance"},
            drawn_by="by_depth",
            values={"value": "variance", "label": "Feature map variance"},
            options=ByDepth,
        ),
        "variance_by_epoch": FigureKind(beside=("fourier",), by_epoch=True),
    },
    merge=mean_over_images("variance"),
    seconds_per_gb=0.4,
)
