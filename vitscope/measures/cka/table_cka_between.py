"""The table `cka_between`: one row per pair of models, and of a cut point of each.

Its numbers are as those of the table `cka`: `images` are those of whole batches, `cka` may be
negative, and is null where one of the two has the same map for all images, up to rounding.

A part is of a single model, and serves all pairs that the model is in: one row per batch and cut
point. Those of a model of 50 cut points, on 10,000 images in batches of 64, take 130 MB.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "cka_between",
    {
        "model": ("string", "first model of the pair, as the study names it"),
        "other_model": ("string", "second model of the pair"),
        "index": ("int32", "position of a cut point of the first, 0 for the stem"),
        "other_index": ("int32", "position of a cut point of the second"),
        "images": ("int64", "number of images"),
        "batches": ("int32", "number of batches that the HSIC is averaged over"),
        "hsic": ("float64", "unbiased HSIC, mean over batches"),
        "cka": ("float64", "HSIC over the root of the product of those of each with itself"),
    },
)

PART = Table(
    "cka_between_per_shard",
    {
        "index": ("int32", "position of a cut point"),
        "first_image": ("int64", "position of the batch's first image among those measured"),
        "images": ("int32", "images of the batch"),
        "gram": (
            "list of float64",
            "Gram matrix of the feature maps over the batch, less their mean: what is on the "
            "diagonal and above it, row by row",
        ),
    },
)
