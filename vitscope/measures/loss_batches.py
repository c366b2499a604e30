"""How measures of the loss cut augmented images into batches, and what a batch costs."""

from typing import Any

from vitscope.errors import VitscopeError
from vitscope.measures.measure import Case, Given
from vitscope.settings.draws import images_apart

# The cost of a product with the Hessian, in forward passes.
PASSES_OF_A_PRODUCT = 6


def fit_batches(images: int, usual: Any) -> Given:
    """Return the usual number of batches and their size, reduced to what `images` images fill."""
    size = min(usual.batch_size, images)
    return {"batch_size": size, "batches": min(usual.batches, images // size)}


def refuse_too_few_images(case: Case, key: str, batches: int, largest: int) -> None:
    """Refuse settings that need more batches than the augmented images have draws for."""
    images = case.study.analysis.augmented.images
    apart = images_apart(largest, case.study.drawn_together(case.model))
    if (batches - 1) * apart + largest > images:
        raise VitscopeError(
            f"{case.study.path}: analysis.{key}: found {batches} of {largest} images each, "
            f"allowed: at most {max(0, images - largest) // apart + (images >= largest)}: each "
            f"begins a draw of {apart} images of models.{case.model}, and "
            f"analysis.augmented.images is {images}."
        )


def refuse_batches_of_one_size(case: Case) -> None:
    """Refuse more batches of a measure than the augmented images have draws for."""
    settings, name = case.settings, case.measure.name
    refuse_too_few_images(case, f"{name}.batches", settings.batches, settings.batch_size)
