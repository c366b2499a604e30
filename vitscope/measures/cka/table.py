"""The table `cka`: one row per model and pair of cut points, each pair in both orders.

`images` counts the images of whole batches. `hsic` of two different cut points may be negative, and
`cka` with it, down to -1: an unbiased estimate of zero is as often below 0 as above. `cka` is null
if one of the two has the same map for all images, up to rounding.

A part has one row per batch and pair of cut points, `index` not above `other_index`.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "cka",
    {
        "model": ("string", "model, as the study names it"),
        "index": ("int32", "position of a cut point, 0 for the stem"),
        "other_index": ("int32", "position of another, or of the same"),
        "images": ("int64", "number of images"),
        "batches": ("int32", "number of batches that the HSIC is averaged over"),
        "hsic": ("float64", "unbiased HSIC, mean over batches"),
        "cka": ("float64", "HSIC over the root of the product of the HSIC of each with itself"),
    },
)

PART = Table(
    "cka_per_shard",
    {
        "index": ("int32", "position of a cut point"),
        "other_index": ("int32", "position of another, or of the same"),
        "first_image": ("int64", "position of the batch's first image among those measured"),
        "images": ("int32", "images of the batch"),
        "hsic": ("float64", "unbiased HSIC of the two feature maps over the batch"),
    },
)
