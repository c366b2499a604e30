"""Hessian: its largest eigenvalues, batch by batch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.measure import Case, FigureKind, Given, Measure, Work
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


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
        (
            "Largest residual |Hv - av| of an eigenvalue, over the largest magnitude, at which it "
            "counts as converged."
        ),
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
    settings: Settings = case.settings
    return {
        "batches": list(case.steps),
        "batch_size": settings.batch_size,
        "weight_decay": case.study.weight_decay(case.model) if settings.l2 else 0.0,
    }


def choose_eigenvalues(case: Case) -> Given:
    """Depend on the batches besides, on how many eigenvalues are found, and how precisely."""
    keys = ("top", "tolerance", "iterations")
    return choose_batches(case) | {key: getattr(case.settings, key) for key in keys}


def work_of_products(case: Case, products: float, vectors: int, *, most: bool) -> Work:
    """Count the passes of so many products of each batch, with so many vectors kept."""
    settings: Settings = case.settings
    count = len(case.steps) * settings.batch_size * products * PASSES_OF_A_PRODUCT
    return Work(count, settings.batch_size, "product", vectors, most)


def count_passes(case: Case) -> Work:
    """Count as many products as there may be: they end where the result has converged."""
    settings: Settings = case.settings
    vectors = max(LEAST_VECTORS, 3 * settings.top)
    return work_of_products(case, settings.iterations, vectors, most=True)


def fit_batches(images: int) -> Given:
    """Return batches that are no more than there are images for."""
    usual = Settings()
    size = min(usual.batch_size, images)
    return {"batch_size": size, "batches": min(usual.batches, images // size)}


def refuse_batches(measure: Measure, study: "Study") -> None:
    """Refuse more batches than there are augmented images."""
    settings, images = measure.read_settings(study), study.analysis.augmented.images
    shown = measure.name in study.tables()
    if shown and settings.batches * settings.batch_size > images:
        raise VitscopeError(
            f"{study.path}: analysis.hessian.batches: found {settings.batches} of "
            f"{settings.batch_size} images each, allowed: at most "
            f"{images // settings.batch_size}: analysis.augmented.images is {images}."
        )


MEASURE = Measure(
    needs="loss",
    figures={
        "hessian": FigureKind(
            published=frozenset({"panel", "eigenvalue", "density"}), snapshots=True
        )
    },
    settings=Settings,
    arguments=choose_eigenvalues,
    takes=count_passes,
    shares=SHARES,
    refuse=refuse_batches,
    fit=fit_batches,
)
