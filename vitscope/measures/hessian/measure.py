"""Hessian: its largest eigenvalues, batch by batch.

The table `hessian`: one row per model, snapshot, batch and rank.

**What is differentiated.** The loss of one batch of augmented images (`analysis.augmented`), in all
trainable parameters: the mean cross-entropy of the mixed and smoothed targets, and the weight decay
term. The model is in evaluation mode: no dropout, no stochastic depth, and batch normalization by
its running statistics. The weight decay term is `weight_decay` / 2 times the sum of squares of the
parameters that AdamW decays in training (matrices and kernels, neither biases nor norms). Its
Hessian is `weight_decay` on the diagonal, which raises every eigenvalue by at most this. The
paper's landscape adds a sum of 2-norms instead: training does not descend it, and it has no Hessian
where a tensor is zero. `analysis.hessian.l2: false` leaves the term out.

**How.** Lanczos, with every new vector made orthogonal to all before it. It starts from random
signs that depend only on the batch, and ends when the residuals of the `top` eigenvalues of largest
magnitude are within `tolerance`. At most 64 vectors are in memory; then it restarts from the 32
best approximations. On the models of `mini` it takes 14 to 29 products with the Hessian per batch,
where ARPACK (`scipy.sparse.linalg.eigsh`), which checks its residuals once per restart, takes 21 to
33 and returns no residuals. A product is one backward pass through the graph of the gradient, which
is built once per batch: 2.2 times the time of a forward and a backward pass. Building the graph for
every product takes 3.2 to 3.8 times, the forward derivative of the gradient 3.9 to 4.7 times, and
several vectors at once, by `vmap`, are no faster than one after another. The graph of a batch stays
in memory: lower `analysis.hessian.batch_size` if it is too large.

**How good.** `residual` comes from the recurrence of Lanczos: an eigenvalue of H lies within the
residual, times the largest magnitude, of the value in the table; usually it is much nearer, by the
square of the residual over the gap. Products have single precision, which adds about 1e-5, so a
lower `tolerance` is of no use. `converged` is false if `iterations` steps were not enough. The
value is then an approximation from within the spectrum; the log of the job and the legend of the
figure count such values. If several eigenvalues are exactly equal, one may stand for all.

Before any spectrum, a job builds the Hessian of eight images twice and refuses a network for which
they differ by more than rounding, for example because dropout stays on, or for which it is not
symmetric. Attention is computed without fused kernels, which have no second derivative.
"""

from dataclasses import dataclass
from typing import Any

from vitscope.errors import VitscopeError
from vitscope.files.tables import Columns, Table
from vitscope.measures.measure import Case, FigureKind, Given, Measure, Work, only, together
from vitscope.settings.section import setting

OF_BATCH: Columns = {
    "model": ("string", "model, as the study names it"),
    "snapshot": ("string", "moment of training; end for the trained model"),
    "batch": ("int32", "batch of augmented images, from 0"),
}
TABLE = Table(
    "hessian",
    {
        **OF_BATCH,
        "images": ("int32", "images of the batch"),
        "rank": ("int32", "order by magnitude, 1 for the largest"),
        "eigenvalue": ("float64", "eigenvalue of the Hessian of the loss on the batch"),
        "residual": ("float64", "|Hv - av| for the unit vector v, over the largest magnitude"),
        "iterations": ("int32", "steps of Lanczos on this batch"),
        "converged": ("bool", "whether the residual is within the tolerance"),
    },
)


# The fewest vectors that Lanczos keeps: LARGEST_BASIS in lanczos.py, which imports torch.
LEAST_VECTORS = 64
# What a product with the Hessian takes, in forward passes.
PASSES_OF_A_PRODUCT = 6


@dataclass(frozen=True)
class Settings:
    """The largest eigenvalues of the Hessian of the training loss."""

    batches: int = setting(
        16, "How many batches of augmented images, with a spectrum for each.", minimum=1
    )
    batch_size: int = setting(64, "Images per batch.", minimum=1)
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
    density_probes: int = setting(
        2, "Random vectors per batch of the full spectral density.", minimum=1
    )
    density_steps: int = setting(40, "Steps of Lanczos from each of them.", minimum=5)


# Batches, as many for each job as the second says.
SHARES = ("batches", "batches_per_job")


def choose_batches(case: Case) -> Given:
    """Depend on which batches of augmented images are measured, and the weight decay."""
    settings = case.settings
    return {
        "batches": list(case.steps),
        "batch_size": settings.batch_size,
        "weight_decay": case.study.weight_decay(case.model) if settings.l2 else 0.0,
    }


def work_of_products(case: Case, products: float, vectors: int, *, most: bool) -> Work:
    """Count the passes of so many products of each batch, with so many vectors kept."""
    settings = case.settings
    count = len(case.steps) * settings.batch_size * products * PASSES_OF_A_PRODUCT
    return Work(count, settings.batch_size, "product", vectors, most)


def count_passes(case: Case) -> Work:
    """Count as many products as there may be: they end where the result has converged."""
    settings: Settings = case.settings
    vectors = max(LEAST_VECTORS, 3 * settings.top)
    return work_of_products(case, settings.iterations, vectors, most=True)


def fit_batches(images: int, usual: Any = Settings()) -> Given:
    """Return batches that are no more than there are images for."""
    size = min(usual.batch_size, images)
    return {"batch_size": size, "batches": min(usual.batches, images // size)}


def refuse_batches(case: Case) -> None:
    """Refuse more batches than there are augmented images."""
    settings, images = case.settings, case.study.analysis.augmented.images
    section, _ = case.measure.settings_of or (case.measure.name, Settings)
    if settings.batches * settings.batch_size > images:
        raise VitscopeError(
            f"{case.study.path}: analysis.{section}.batches: found {settings.batches} of "
            f"{settings.batch_size} images each, allowed: at most "
            f"{images // settings.batch_size}: analysis.augmented.images is {images}."
        )


HESSIAN = Measure(
    needs="loss",
    table=TABLE,
    question="How networks train",
    figures={
        "hessian": FigureKind(
            published=frozenset({"panel", "eigenvalue", "density"}), snapshots=True
        )
    },
    settings=Settings,
    arguments=together(choose_batches, only("top", "tolerance", "iterations")),
    takes=count_passes,
    shares=SHARES,
    refuse=refuse_batches,
    fit=fit_batches,
)
