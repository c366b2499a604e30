"""Hessian: its largest eigenvalues, batch by batch.

The table `hessian`: one row per model, snapshot, batch size, batch and rank.

**What is differentiated.** The loss of one batch of augmented images (`analysis.augmented`), with
respect to all trainable parameters: the mean cross-entropy with the mixed and smoothed targets,
plus the weight decay term. The model is in evaluation mode: no dropout, no stochastic depth, and
batch normalization with its running statistics. The weight decay term is `weight_decay` / 2 times
the sum of squares of the parameters that AdamW decays in training (matrices and kernels, neither
biases nor parameters of normalization layers). Its Hessian is `weight_decay` on the diagonal, which
raises every eigenvalue by at most this number. The paper's landscape adds a sum of 2-norms instead:
training does not minimize this sum, and it has no Hessian where a tensor is zero.
`analysis.hessian.l2: false` leaves the weight decay term out.

**Of how many images.** An eigenvalue is that of the mean loss of its batch, and the sign of the
smaller ones depends on how many images that is: of the ViT of `mini` at the end of its training, 11
of the 30 largest of six batches are negative in batches of six images, and none in those of 100
that it was trained with. So `sizes` says which batches are measured, and claims are
about the ones as large as in training, or the largest ones below that.

**Which images.** Batch *i* of any size has the first images of the *i*-th training batch that the
recipe draws with `augmented.seed`: batches of several sizes are nested, and each has its own order,
mixing and augmentation. Images of one training batch share one draw of mixup or cutmix, so that
several batches cut out of one would be no sample of batches. Where images are not mixed, as with
`loss: {augment: none}`, batches follow each other.

**Bundled spectra.** Where `bundled` names a table that was made before, a batch that is in it is
not measured again if the loss on the batch is the same there, to one part in 100,000; other
weights, images or settings have another loss, and are measured. Such rows are marked `bundled`, and
figures say so. To make such a table again, take the key out of the study and copy
`results/{study}/tables/hessian.parquet`.

**How.** Lanczos, with every new vector made orthogonal to all vectors before it. It starts from
random signs that depend only on the batch, and ends when the residuals of the `top` eigenvalues of
largest magnitude are within `tolerance`, no other approximation may overtake them, and two more
steps have changed neither. At most 64 vectors are in memory; then Lanczos restarts
from the 32 best approximations. On the models of `mini` it takes 14 to 29 products with the Hessian
per batch. ARPACK (`scipy.sparse.linalg.eigsh`), which checks its residuals once per restart, takes
21 to 33 products and returns no residuals. A product is one backward pass through the graph of the
gradient, which is built once per batch. A product takes 2.2 times as long as a forward and a
backward pass together. It would take 3.2 to 3.8 times as long as they do if the graph were built
for every product, and 3.9 to 4.7 times with the forward derivative of the gradient. Several vectors
at once, by `vmap`, are no faster than one after another. The graph of a batch stays in memory:
leave the largest of `analysis.hessian.sizes` out if its graph is too large.

**How good.** `residual` comes from the recurrence of Lanczos: the value in the table differs from
an eigenvalue of the Hessian by at most the residual times the largest magnitude. Usually the
difference is much smaller: of the order of the square of the residual, divided by the gap to the
next eigenvalue. Products have single precision, which adds about 1e-5, so a lower `tolerance` is of
no use. `converged` is false if `iterations` steps were not enough. The value is then an
approximation from within the spectrum; the log of the job and the titles in the figure count such
values. If several eigenvalues are exactly equal, only one of them may be found.

Before any spectrum, a job builds the Hessian of eight images twice. It refuses a network if the two
differ by more than rounding, for example because dropout stays on, or if the Hessian is not
symmetric. Attention of torch and of timm is computed without fused kernels, which have no second
derivative.

The table `curvature`: one row per model, snapshot, batch and part of the network.

A part is the whole network, a block or a kind of layer. The Hessian of a part is a diagonal block
of the Hessian in the table `hessian`, the one for the part's parameters, with one difference: the
weight decay term is left out unless `analysis.curvature.l2` is true. The term would add
`weight_decay` to each eigenvalue, which is most of the trace and says nothing about the part. Each
parameter is in one block and in one kind of layer. A *block* lies between a cut point and the one
before it; `head` is after the last cut point. A parameter belongs to the block in which its module
begins. *Kinds of layers* are found by what a network computes:

- `qkv`: the layers nearest before the products of an attention
- `projection`: the layers nearest after these products
- `norm`: all normalization layers
- `stem` and `head`: everything else before the first and after the last cut point, including class
  token and position embedding
- `mlp` and `convolution`: all other matrix products and convolutions
- `other`: parameters that no layer multiplies by, such as scales of branches and position biases

Biases belong to their layer.

**The Gauss-Newton part.** The Hessian is H = G + R. G is the Hessian that the loss would have if
logits were linear in the parameters, with the weight decay term if there is one: it has no negative
eigenvalues. R is due to the curvature of the network itself; all negative curvature comes from R.

**How.** Traces are Hutchinson's estimates, for H and for G, from `probes` vectors v of random
signs, the same for all parts. The estimate for a part is the sum of v times Hv over the part's
entries, so that one product serves all parts. The estimates of all blocks add up to the estimate of
the network, up to rounding, and so do the estimates of all kinds of layers. The eigenvalue is the
one of largest magnitude, found by Lanczos as for the table `hessian`, in the parameters of the
part. Backward passes of these products go only as far back in the network as the part needs.

The table `hessian_density`: one row per model, snapshot, batch, probe and node.

The density comes from stochastic Lanczos quadrature of the same Hessian: from each random vector,
`density_steps` steps of Lanczos give this number of nodes and weights, or fewer if the spectrum has
fewer eigenvalues. The sum of `weight` times `node`, averaged over probes, estimates the trace of
the Hessian divided by the number of parameters; with the square of `node`, it estimates the squared
Frobenius norm divided by that number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from vitscope.claims.intervals import FEWEST_OF_MEDIAN
from vitscope.errors import VitscopeError, wrong
from vitscope.files.tables import Columns, Table
from vitscope.files.whole import sha256_of
from vitscope.measures.loss_batches import (
    PASSES_OF_A_PRODUCT,
    fit_batches,
    refuse_batches_of_one_size,
    refuse_too_few_images,
)
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    Multiples,
    only,
    refuse_too_few_to_decide,
    together,
)
from vitscope.measures.work import Work
from vitscope.package_data import ROOT
from vitscope.settings.section import setting

OF_BATCH: Columns = {
    "model": ("string", "model, as the study names it"),
    "snapshot": ("string", "moment of training; end for the trained model"),
    "images": ("int32", "images of the batch"),
    "batch": ("int32", "number of the batch, from 0; each has its own draw of augmentation"),
}
HESSIAN_TABLE = Table(
    "hessian",
    {
        **OF_BATCH,
        "training_batch": ("int32", "images of a batch in training; null if the study names none"),
        "rank": ("int32", "order by magnitude, 1 for the largest"),
        "eigenvalue": ("float64", "eigenvalue of the Hessian of the loss on the batch"),
        "residual": ("float64", "|Hv - av| for the unit vector v, over the largest magnitude"),
        "iterations": ("int32", "steps of Lanczos on this batch"),
        "converged": ("bool", "whether the residual is within the tolerance"),
        "loss": ("float64", "the loss on the batch, with the weight decay term if it is added"),
        "bundled": ("bool", "whether `analysis.hessian.bundled` has the spectrum, measured before"),
    },
)

# A copy of LARGEST_BASIS in lanczos.py, which imports torch and so cannot be imported here.
LEAST_VECTORS = 64


# Keys of earlier versions, and what to write in their place.
REPLACED = {
    "batch_size": (
        "write `sizes: [6, 16, 100]`, the images of a batch for each size to measure, of which "
        "claims take that of the training; `density_size` is that of the full density"
    )
}


@dataclass(frozen=True)
class HessianSettings:
    """The largest eigenvalues of the Hessian of the training loss."""

    REPLACED = REPLACED

    sizes: list[int] = setting(
        [64],
        "Images of a batch: one size or several. Batches are nested: batch 3 of a small size has "
        "the first images of batch 3 of a large one.",
        items={"minimum": 1},
        minItems=1,
        uniqueItems=True,
    )
    batches: int | list[int] = setting(
        8,
        "How many batches of augmented images, with a spectrum for each: one number, or one for "
        "each of `sizes`. Six are the fewest that can decide a claim.",
        minimum=1,
        items={"minimum": 1},
        minItems=1,
    )
    top: int = setting(
        5, "How many eigenvalues of each batch, the largest by magnitude.", minimum=1
    )
    batches_per_job: int = setting(
        1, "How many batches one job measures; results do not depend on it.", minimum=1
    )
    tolerance: float = setting(
        0.001,
        "Largest residual |Hv - av| of an eigenvalue, over the largest magnitude, at which it "
        "counts as converged.",
        exclusiveMinimum=0,
    )
    iterations: int = setting(
        200,
        "Most steps of Lanczos; `converged` is false for an eigenvalue that needs more.",
        minimum=10,
    )
    l2: bool = setting(True, "Add the weight decay term to the loss.")
    bundled: str | None = setting(
        None,
        "A table `hessian` that was made before, relative to the root of this repository. Spectra "
        "in it that are of the same batches and have the same loss are not measured again.",
    )
    density_size: int = setting(64, "Images of a batch of the full spectral density.", minimum=1)
    density_batches: int = setting(4, "How many batches of this size.", minimum=1)
    density_probes: int = setting(
        2, "Random vectors per batch of the full spectral density.", minimum=1
    )
    density_steps: int = setting(40, "Steps of Lanczos from each of them.", minimum=5)

    @property
    def every_batch(self) -> list[tuple[int, int]]:
        """The images and the number of every batch, by size."""
        return [
            (size, number)
            for size, count in zip(self.sizes, self.counts, strict=True)
            for number in range(count)
        ]

    @property
    def counts(self) -> list[int]:
        """How many batches each size has."""
        if isinstance(self.batches, int):
            return [self.batches] * len(self.sizes)
        return self.batches

    @property
    def largest(self) -> int:
        return max(self.sizes)


SHARES = ("every_batch", "batches_per_job")


def batches_of_part(case: Case) -> list[tuple[int, int]]:
    every: list[tuple[int, int]] = case.settings.every_batch
    return [every[step] for step in case.steps]


def weight_decay_of_hessian(case: Case) -> float:
    return case.study.weight_decay(case.model) if case.settings.l2 else 0.0


def choose_hessian_batches(case: Case) -> Given:
    """Return the batches of augmented images to measure, the largest size, and the weight decay."""
    return {
        "batches": batches_of_part(case),
        "largest": case.settings.largest,
        "weight_decay": weight_decay_of_hessian(case),
    }


def what_of_hessian_is_known(case: Case) -> Given:
    """Return the batch size of the training, and the file of bundled spectra with its digest."""
    file = case.settings.bundled
    return {
        "training_batch": case.study.training_batch(case.model),
        "bundled": file and {"file": file, "sha256": sha256_of(ROOT / file)},
    }


def work_of_products(
    batches: Sequence[tuple[int, int]], products: float, vectors: int, *, most: bool
) -> Work:
    """Count the passes for `products` products on each batch; `vectors` vectors stay in memory.

    Memory holds the graph of the largest batch.
    """
    sizes = [size for size, _ in batches]
    return Work(sum(sizes) * products * PASSES_OF_A_PRODUCT, max(sizes), "product", vectors, most)


def fit_hessian_batches(images: int) -> Given:
    """Return the usual batches, reduced to what `images` images fill."""
    usual = HessianSettings()
    size = min(usual.largest, images)
    count = min(usual.counts[0], images // size)
    density = {"density_size": size, "density_batches": min(usual.density_batches, count)}
    return {"sizes": [size], "batches": count, **density}


def refuse_hessian_batches(case: Case) -> None:
    """Refuse numbers of batches that fit no sizes, and more batches than there are draws."""
    settings: HessianSettings = case.settings
    if not isinstance(settings.batches, int) and len(settings.batches) != len(settings.sizes):
        raise VitscopeError(
            f"{case.study.path}: analysis.hessian.batches: found {len(settings.batches)} numbers, "
            f"allowed: one for all sizes, or one for each of the {len(settings.sizes)} in "
            f"analysis.hessian.sizes."
        )
    if settings.bundled and not (ROOT / settings.bundled).is_file():
        raise wrong(
            case.study.path,
            "analysis.hessian.bundled",
            settings.bundled,
            "a file of this repository, relative to its root.",
        )
    refuse_too_few_images(case, "hessian.batches", max(settings.counts), settings.largest)


def refuse_density_batches(case: Case) -> None:
    settings: HessianSettings = case.settings
    many, size = settings.density_batches, settings.density_size
    refuse_too_few_images(case, "hessian.density_batches", many, size)


HESSIAN = Measure(
    needs="loss",
    measure="compute:measure_hessian",
    table=HESSIAN_TABLE,
    question="How networks train",
    figures={
        "hessian": FigureKind(
            "show:plot_hessian",
            "claims:CLAIMS_HESSIAN",
            sketch="vitscope.measures.sketches:sketch_hessian",
            published=frozenset({"panel", "eigenvalue", "density"}),
            snapshots=True,
        ),
        "hessian_by_batch": FigureKind("show:plot_hessian_by_batch", snapshots=True),
    },
    settings=HessianSettings,
    arguments=together(
        choose_hessian_batches, only("top", "tolerance", "iterations"), what_of_hessian_is_known
    ),
    takes=lambda case: work_of_products(
        batches_of_part(case),
        case.settings.iterations,
        max(LEAST_VECTORS, 3 * case.settings.top),
        most=True,
    ),
    shares=SHARES,
    refuse=refuse_hessian_batches,
    fit=fit_hessian_batches,
    decides=lambda case: refuse_too_few_to_decide(
        case, "hessian.batches", min(case.settings.counts), FEWEST_OF_MEDIAN
    ),
)

CURVATURE_TABLE = Table(
    "curvature",
    {
        **OF_BATCH,
        "of": ("string", "network, block or layer: what the part is"),
        "index": ("int32", "position of the cut point behind a block; of layers, an order"),
        "part": ("string", "network, name of the cut point behind a block or head, kind of layer"),
        "parameters": ("int64", "trained parameters of the part"),
        "trace": ("float64", "estimated trace of the Hessian in these"),
        "gauss_newton_trace": ("float64", "the same of its Gauss-Newton part"),
        "eigenvalue": ("float64", "eigenvalue of largest magnitude of the Hessian in these"),
        "residual": ("float64", "|Hv - av| for the unit vector v, over the magnitude of a"),
        "converged": ("bool", "whether the residual is within the tolerance"),
    },
)

# The cost of finding a part's eigenvalue, in products with the Hessian in all parameters: 1.5 to
# 4.2 were measured with a tolerance of 0.05; at 0.01, Lanczos takes a third more steps.
PRODUCTS_OF_PART = 6
# The number of parts besides the blocks: kinds of layers, the network itself, and the head.
PARTS_BESIDE_BLOCKS = 8


@dataclass(frozen=True)
class CurvatureSettings:
    """The curvature of the training loss in parts of the network."""

    batches: int = setting(8, "How many batches of augmented images.", minimum=1)
    batch_size: int = setting(64, "Images per batch.", minimum=1)
    batches_per_job: int = setting(4, "Batches that are measured by one job.", minimum=1)
    probes: int = setting(4, "Random vectors per batch for the traces.", minimum=1)
    tolerance: float = setting(
        0.01,
        "Residual of an eigenvalue, over its magnitude, at which it counts as converged.",
        exclusiveMinimum=0,
    )
    iterations: int = setting(100, "Most steps of Lanczos for each part.", minimum=10)
    l2: bool = setting(
        False,
        "Add the weight decay term to the loss; it is most of the trace, the same for all parts.",
    )

    @property
    def every_batch(self) -> list[tuple[int, int]]:
        return [(self.batch_size, number) for number in range(self.batches)]

    @property
    def largest(self) -> int:
        return self.batch_size


def count_passes_of_curvature(case: Case) -> Work:
    """Count two products for each random vector, and the products for each part's eigenvalue."""
    parts = case.cut_points + PARTS_BESIDE_BLOCKS
    products = 2 * case.settings.probes + parts * PRODUCTS_OF_PART
    work = work_of_products(batches_of_part(case), products, LEAST_VECTORS, most=True)
    # Memory holds the graph of the Gauss-Newton part as well as the graph of the Hessian.
    return replace(work, batch=2 * work.batch)


CURVATURE = Measure(
    needs="loss",
    measure="compute:measure_curvature",
    table=CURVATURE_TABLE,
    reads=("blocks",),
    question="How networks train",
    figures={
        "curvature": FigureKind(
            "show:plot_curvature",
            "claims:CLAIMS_CURVATURE",
            beside=("blocks",),
            snapshots=True,
            options=Multiples,
        ),
        "curvature_by_layer": FigureKind("show:plot_curvature_by_layer", snapshots=True),
    },
    settings=CurvatureSettings,
    arguments=together(choose_hessian_batches, only("probes", "tolerance", "iterations")),
    takes=count_passes_of_curvature,
    shares=SHARES,
    refuse=refuse_batches_of_one_size,
    fit=partial(fit_batches, usual=CurvatureSettings()),
    decides=lambda case: refuse_too_few_to_decide(
        case, "curvature.batches", case.settings.batches, FEWEST_OF_MEDIAN
    ),
)

HESSIAN_DENSITY_TABLE = Table(
    "hessian_density",
    {
        **OF_BATCH,
        "probe": ("int32", "random vector that Lanczos started from"),
        "node": ("float64", "node of the quadrature, an eigenvalue"),
        "weight": ("float64", "its weight; those of a probe add up to 1"),
    },
)


def density_batches_of_part(case: Case) -> list[tuple[int, int]]:
    return [(case.settings.density_size, step) for step in case.steps]


def choose_density_batches(case: Case) -> Given:
    """Return the batches of the density, their size, the weight decay, and steps of Lanczos."""
    settings: HessianSettings = case.settings
    return {
        "batches": density_batches_of_part(case),
        "largest": settings.density_size,
        "weight_decay": weight_decay_of_hessian(case),
        "probes": settings.density_probes,
        "steps": settings.density_steps,
    }


HESSIAN_DENSITY = Measure(
    needs="loss",
    measure="compute:measure_hessian_density",
    table=HESSIAN_DENSITY_TABLE,
    question="How networks train",
    figures={"hessian_density": FigureKind("show:plot_hessian_density", snapshots=True)},
    settings_of=("hessian", HessianSettings),
    arguments=choose_density_batches,
    takes=lambda case: work_of_products(
        density_batches_of_part(case),
        case.settings.density_probes * case.settings.density_steps,
        case.settings.density_steps,
        most=False,
    ),
    shares=("density_batches", "batches_per_job"),
    refuse=refuse_density_batches,
)
