"""Feature map variance: over space, then its mean over channels and images."""

from vitscope.measures.measure import BY_DEPTH, FigureKind, Measure, mean_over_images

MEASURE = Measure(
    needs="latents",
    figures={
        "feature_variance": FigureKind(
            published=BY_DEPTH | {"variance"},
            drawn_by="by_depth",
            values={"value": "variance", "label": "Feature map variance"},
        ),
        "variance_by_epoch": FigureKind("by_epoch", beside=("fourier",), by_epoch=True),
    },
    merge=mean_over_images("variance"),
    seconds_per_gb=0.4,
)
