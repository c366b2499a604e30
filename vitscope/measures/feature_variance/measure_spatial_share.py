"""How much of all variance of feature maps is within images, over space: a variance without scale.

The table `spatial_share`: one row per model and cut point.

The variance of a channel over the positions of all images is the mean of its variance over the
positions of each image and the variance of its mean over images, exactly, where none is unbiased.
The share is that of the first, of the means of both over channels. A block that multiplies the
feature map changes the variance and not the share. It is null for maps with one position, and
where nothing varies.

A part has one row per cut point and image of a shard. Of 10,000 images at 20 cut points of 400
channels parts take 640 MB, before compression.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, OF_IMAGE, interval_columns, resampled_column
from vitscope.measures.measure import BY_DEPTH, ByDepth, FigureKind, Measure, Merge, bootstrap

TABLE = Table(
    "spatial_share",
    {
        **AT_CUT_POINT,
        "within": ("float64", "variance over the positions of an image, mean over images"),
        "total": ("float64", "variance over the positions of all images together"),
        "share": ("float64", "within over total, each a mean over channels"),
        **interval_columns("of the share over images"),
        **resampled_column("share"),
    },
)
PART = Table(
    "spatial_share_per_image",
    {
        **OF_IMAGE,
        "within": ("float64", "variance over positions, mean over channels"),
        "means": ("list of float64", "mean over positions, of each channel"),
    },
)

_LABEL = "Share within images"
SPATIAL_SHARE = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="What blocks do to feature maps",
    figures={
        "spatial_share": FigureKind(
            drawn_by="by_depth",
            values={"value": "share", "label": _LABEL, "from_zero": False},
            options=ByDepth,
        ),
        "variance_and_share": FigureKind(
            beside=("feature_variance",), published=BY_DEPTH | {"variance"}
        ),
        "share_by_epoch": FigureKind(by_epoch=True),
    },
    merge=Merge(bootstrap, at_cut_points=True),
    seconds_per_gb=0.8,
)
