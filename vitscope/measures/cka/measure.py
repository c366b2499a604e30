"""CKA: the similarity of the feature maps of all pairs of cut points.

The table `cka`: one row per model and pair of cut points, each pair in both orders.

`images` counts the images of whole batches. `hsic` of two different cut points may be negative, and
`cka` with it, down to -1: an unbiased estimate of zero is as often below 0 as above. `cka` is null
if one of the two cut points has the same map for all images, up to rounding.

A CKA is above chance if `p` is below 0.05. `null`, `p` and `calibrated` are of 200 permutations of
the images within batches, the same in all batches, as Gröger et al. (2026) define them.

Beside it, `mutual` is the share of nearest neighbours that two cut points have in common, as
`mutual_knn` of Huh et al. (2024): the 10 nearest other images of each image, by the cosine of the
feature maps' means over space. They are searched among the first `mutual_images` images, 1,024 at
most; of 10 images or fewer, and of maps whose means are the same for all, `mutual` is null. It is
larger among fewer images, even by chance; `mutual_null`, `mutual_p` and `mutual_calibrated` are of
200 orders of all these images.

A part has one row per batch and pair of cut points, with `index` at most `other_index`. For a model
with 50 cut points, on 10,000 images in batches of 64, parts take 160 MB, and the vectors of
images as much again with 768 channels.

The table `cka_between`: one row per pair of models and pair of cut points, one from each model.

As in the table `cka`, `images` counts the images of whole batches, and `cka` may be negative. It is
null if one of the two cut points has the same map for all images, up to rounding. `mutual` is that
of the table `cka`, too.

A part belongs to one model and serves all pairs with this model: one row per batch and cut point.
For a model with 50 cut points, on 10,000 images in batches of 64, parts take 130 MB, and the
vectors of images 160 MB with 768 channels.
"""

from dataclasses import dataclass

from vitscope.errors import VitscopeError, wrong
from vitscope.files.tables import Columns, Table
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    Merge,
    refuse_few_measured_images,
)
from vitscope.settings.section import setting

# An unbiased HSIC divides by the number of images minus three.
LEAST_BATCH = 4

# A CKA is above chance if its `p` is below this level.
LEVEL = 0.05
# How a CKA compares with that of images in other orders.
CALIBRATED: Columns = {
    "null": (
        "float64",
        "threshold: of 200 orders of the images of one map, 5 % have a CKA above it",
    ),
    "p": ("float64", "share of these orders whose CKA is as high, with the true order among them"),
    "calibrated": ("float64", "cka above null, as a share of 1 above null; 0 where it is below"),
}

# The neighbours that two cut points have in common, and how many chance explains.
MUTUAL: Columns = {
    "mutual_images": ("int64", "images among which the nearest of each are searched"),
    "mutual": ("float64", "share of the 10 nearest of an image that both have in common, mean"),
    "mutual_null": ("float64", "threshold: in 5 % of 200 orders of the images, more is in common"),
    "mutual_p": ("float64", "share of these orders with as much, the true order among them"),
    "mutual_calibrated": ("float64", "mutual above mutual_null, as a share of 1 above it; or 0"),
}
VECTORS: Columns = {
    "vectors": (
        "list of float32",
        "means over space of the maps of the batch, image by image, of the first 1,024 images",
    ),
}

CKA_TABLE = Table(
    "cka",
    {
        "model": ("string", "model, as the study names it"),
        "index": ("int32", "position of a cut point, 0 for the stem"),
        "other_index": ("int32", "position of another, or of the same"),
        "images": ("int64", "number of images"),
        "batches": ("int32", "number of batches that the HSIC is averaged over"),
        "hsic": ("float64", "unbiased HSIC, mean over batches"),
        "cka": ("float64", "HSIC over the root of the product of the HSIC of each with itself"),
        **CALIBRATED,
        **MUTUAL,
        "cka_without": (
            "list of float32",
            "cka without each batch in turn; null unless index is below other_index",
        ),
    },
)

CKA_PART = Table(
    "cka_per_shard",
    {
        "index": ("int32", "position of a cut point"),
        "other_index": ("int32", "position of another, or of the same"),
        "first_image": ("int64", "position of the batch's first image among those measured"),
        "images": ("int32", "images of the batch"),
        "hsic": ("float64", "unbiased HSIC of the two feature maps over the batch"),
        "null": (
            "list of float32",
            "the same, with the images of one of the two maps in each of 200 orders",
        ),
        **VECTORS,
    },
)

SECONDS_PER_GB = 0.7


@dataclass(frozen=True)
class CkaSettings:
    """The similarity of the feature maps of all pairs of cut points."""

    batch_size: int = setting(
        64,
        "Images per estimate of the HSIC, of which the mean is taken. It divides `shard_size` "
        "where there are several shards; the last images that fill no batch are left out.",
        minimum=LEAST_BATCH,
    )


def batch_size(case: Case) -> Given:
    """Return the number of images per estimate of the HSIC: all images if they fill no batch."""
    return {"batch_size": min(case.settings.batch_size, case.study.images(case.model))}


def refuse_cka_batches(case: Case) -> None:
    """Refuse batches that shards would split, and batches of too few images."""
    refuse_few_measured_images(case, LEAST_BATCH)
    study, shard_size = case.study, case.study.analysis.shard_size
    if study.shards(case.model) > 1 and shard_size % batch_size(case)["batch_size"]:
        allowed = f"a divisor of analysis.shard_size, which is {shard_size}."
        raise wrong(study.path, "analysis.cka.batch_size", case.settings.batch_size, allowed)


def refuse_undecided_cka(case: Case) -> None:
    """Refuse batches so large that there are too few of them to decide a claim."""
    from vitscope.claims.chance import LEAST_BATCHES

    images, size = case.study.images(case.model), batch_size(case)["batch_size"]
    if images // size < LEAST_BATCHES:
        raise VitscopeError(
            f"{case.study.path}: analysis.cka.batch_size: {images // size} of {LEAST_BATCHES} "
            f"batches of {size} images: too few to decide any claim of the figures of "
            f"'{case.measure.name}': lower it to {images // LEAST_BATCHES}, or raise "
            f"analysis.images."
        )


CKA = Measure(
    needs="latents",
    measure="compute:measure_cka",
    table=CKA_TABLE,
    part=CKA_PART,
    question="How networks are built",
    figures={"cka": FigureKind("show:plot_cka", "claims:CLAIMS_CKA", beside=("blocks",))},
    merge=Merge("compute:merge_cka"),
    settings=CkaSettings,
    arguments=batch_size,
    seconds_per_gb=SECONDS_PER_GB,
    refuse=refuse_cka_batches,
    decides=refuse_undecided_cka,
)

CKA_BETWEEN_TABLE = Table(
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
        **CALIBRATED,
        **MUTUAL,
    },
)

CKA_BETWEEN_PART = Table(
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
        **VECTORS,
    },
)

CKA_BETWEEN = Measure(
    needs="latents",
    measure="compute:measure_cka_between",
    table=CKA_BETWEEN_TABLE,
    part=CKA_BETWEEN_PART,
    question="How networks are built",
    figures={
        "cka_between": FigureKind("show:plot_cka_between", beside=("blocks",)),
        "similarity_matrix": FigureKind(
            "show_similarity_matrix:plot_similarity_matrix", beside=("blocks",), all_pairs=True
        ),
    },
    merge=Merge("compute:merge_cka_between"),
    settings_of=("cka", CkaSettings),
    arguments=batch_size,
    models=2,
    seconds_per_gb=SECONDS_PER_GB,
    refuse=refuse_cka_batches,
)
