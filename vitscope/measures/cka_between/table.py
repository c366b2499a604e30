"""The table `cka_between`: one row per pair of models, and of a cut point of each.

Its numbers are as those of the table `cka`: `images` are those of whole batches, `cka` may be
negative, and is null where one of the two has the same map for all images, up to rounding.

A part is of a single model, and serves all pairs that the model is in: one row per batch and cut
point. Those of a model of 50 cut points, on 10,000 images in batches of 64, take 130 MB.
"""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "cka_between",
    {
        "model": (pa.string(), "first model of the pair, as the study names it"),
        "other_model": (pa.string(), "second model of the pair"),
        "index": (pa.int32(), "position of a cut point of the first, 0 for the stem"),
        "other_index": (pa.int32(), "position of a cut point of the second"),
        "images": (pa.int64(), "number of images"),
        "batches": (pa.int32(), "number of batches that the HSIC is averaged over"),
        "hsic": (pa.float64(), "unbiased HSIC, mean over batches"),
        "cka": (pa.float64(), "HSIC over the root of the product of those of each with itself"),
    },
)

PART = Table(
    "cka_between_per_shard",
    {
        "index": (pa.int32(), "position of a cut point"),
        "first_image": (pa.int64(), "position of the batch's first image among those measured"),
        "images": (pa.int32(), "images of the batch"),
        "gram": (
            pa.list_(pa.float64()),
            "Gram matrix of the feature maps over the batch, less their mean: what is on the "
            "diagonal and above it, row by row",
        ),
    },
)
