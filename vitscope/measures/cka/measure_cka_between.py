"""CKA between two networks: the similarity of each cut point of one with each of the other.

The table `cka_between`: one row per pair of models, and of a cut point of each.

As in the table `cka`, `images` counts the images of whole batches, and `cka` may be negative, and
is null if one of the two has the same map for all images, up to rounding.

A part belongs to one model and serves all pairs with this model: one row per batch and cut point.
For a model with 50 cut points, on 10,000 images in batches of 64, parts take 130 MB.
"""

from vitscope.files.tables import Table
from vitscope.measures.cka.measure import SECONDS_PER_GB, Settings, batch_size, refuse_batches
from vitscope.measures.measure import FigureKind, Measure

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
        "cka": ("float64", "HSIC over the root of the product of the HSIC of each with itself"),
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


# In batches as of one network.
CKA_BETWEEN = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="How networks are built",
    figures={"cka_between": FigureKind(beside=("blocks",))},
    settings_of=("cka", Settings),
    arguments=batch_size,
    of_pairs=True,
    seconds_per_gb=SECONDS_PER_GB,
    refuse=refuse_batches,
)
