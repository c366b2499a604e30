"""Feature map variance: over space, then its mean over channels and images.

The table `feature_variance`: one row per model and cut point, for all models that figures show.

Figures are drawn from the same rows, one file per model, in
`results/{study}/feature_variance/{model}.parquet`.

The variance is the unbiased one over the positions of a feature map. A map with one position has
none: its value is null. A cut point is a place on the residual stream, see
[networks.md](networks.md).

A part has one row per cut point and image of a shard.

The table `normalized_variance`: one row per model and cut point.

The variance of a feature map behind a norm: at each position, the mean over channels is subtracted
from the channels, and they are divided by their standard deviation over channels, as a LayerNorm
without weights does; then the unbiased variance over the positions is taken, and its mean over
channels and images. It is 1 minus the mean cosine between the channels of different positions, each
less its mean, and so between 0 (all positions are alike) and 2. Neither the scale of a position nor
a constant added to all of its channels changes it. In networks whose blocks begin with a LayerNorm,
such as ViT, Swin and MLP-Mixer, it is the variance that the next block reads, but for the weights
of that norm, which are the same at all positions, and its epsilon. In networks with batch
normalization, no layer divides so, and it is a variance without the scale alone. A map with one
position has none: its value is null.

A part has one row per cut point and image of a shard.

The table `spatial_share`: one row per model and cut point.

The variance of a channel over the positions of all images is the sum of two terms: the mean over
images of its variance within an image, and the variance over images of its mean. This is exact for
biased variances. Both terms are averaged over channels; the share is the first divided by the sum.
A block that multiplies the feature map by a number changes the variance but not the share. The
share is null for maps with one position, and where nothing varies.

A part has one row per cut point and image of a shard. The parts of 10,000 images at 20 cut points
with 400 channels take 640 MB before compression.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import (
    AT_CUT_POINT,
    OF_IMAGE,
    interval_columns,
    mean_columns,
    per_image_columns,
    resampled_column,
)
from vitscope.measures.measure import (
    BY_DEPTH,
    ByDepth,
    ByEpoch,
    FigureKind,
    Measure,
    Merge,
    Multiples,
    bootstrap,
    mean_over_images,
)

FEATURE_VARIANCE_TABLE = Table(
    "feature_variance",
    mean_columns("variance", "variance over space, mean over channels and images"),
)
FEATURE_VARIANCE_PART = Table(
    "variance_per_image", per_image_columns("variance", "variance over space, mean over channels")
)

FEATURE_VARIANCE = Measure(
    needs="latents",
    measure="compute:measure_feature_variance",
    table=FEATURE_VARIANCE_TABLE,
    part=FEATURE_VARIANCE_PART,
    question="What blocks do to feature maps",
    figures={
        "feature_variance": FigureKind(
            "show:plot_feature_variance",
            "claims:CLAIMS_FEATURE_VARIANCE",
            sketch="vitscope.measures.sketches:sketch_feature_variance",
            sketch_change="vitscope.measures.sketches:sketch_feature_variance_change",
            published=BY_DEPTH | {"variance"},
            options=ByDepth,
        ),
        "variance_by_epoch": FigureKind(
            "show:plot_variance_by_epoch", beside=("fourier",), by_epoch=True, options=Multiples
        ),
    },
    merge=mean_over_images("variance"),
    seconds_per_gb=0.4,
)

NORMALIZED_VARIANCE_TABLE = Table(
    "normalized_variance",
    mean_columns(
        "normalized_variance",
        "variance over space behind a norm over channels, mean over channels and images",
    ),
)
NORMALIZED_VARIANCE_PART = Table(
    "normalized_variance_per_image",
    per_image_columns(
        "normalized_variance", "variance over space behind a norm over channels, mean over channels"
    ),
)

NORMALIZED_VARIANCE = Measure(
    needs="latents",
    measure="compute:measure_normalized_variance",
    table=NORMALIZED_VARIANCE_TABLE,
    part=NORMALIZED_VARIANCE_PART,
    question="What blocks do to feature maps",
    figures={
        "normalized_variance": FigureKind(
            "show:plot_normalized_variance", "claims:CLAIMS_NORMALIZED_VARIANCE", options=ByDepth
        ),
        "without_scale": FigureKind(
            "show:plot_without_scale",
            beside=("feature_variance", "spatial_share", "fourier"),
            options=ByEpoch,
        ),
    },
    merge=mean_over_images("normalized_variance"),
    seconds_per_gb=2,
)

SPATIAL_SHARE_TABLE = Table(
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
SPATIAL_SHARE_PART = Table(
    "spatial_share_per_image",
    {
        **OF_IMAGE,
        "within": ("float64", "variance over positions, mean over channels"),
        "means": ("list of float64", "mean over positions, of each channel"),
    },
)

SPATIAL_SHARE = Measure(
    needs="latents",
    measure="compute:measure_spatial_share",
    table=SPATIAL_SHARE_TABLE,
    part=SPATIAL_SHARE_PART,
    question="What blocks do to feature maps",
    figures={
        "spatial_share": FigureKind(
            "show:plot_spatial_share", "claims:CLAIMS_SPATIAL_SHARE", options=ByDepth
        ),
        "variance_and_share": FigureKind(
            "show:plot_variance_and_share",
            "claims:CLAIMS_VARIANCE_AND_SHARE",
            beside=("feature_variance",),
            published=BY_DEPTH | {"variance"},
            options=Multiples,
        ),
        "share_by_epoch": FigureKind(
            "show:plot_spatial_share",
            by_epoch=True,
            values={"by_epoch": True},
            options=Multiples,
        ),
    },
    merge=Merge("compute:merge_spatial_share", bootstrap, at_cut_points=True),
    seconds_per_gb=0.8,
)
