"""What a study says of its images, against what can be: how many there are, and their scale."""

from collections.abc import Sequence

from vitscope.errors import VitscopeError, quoted


def check_taken(where: str, wanted: int | None, there: int) -> None:
    """Refuse a split without images, or with fewer than the study takes of it."""
    if there == 0:
        raise VitscopeError(f"{where}: the source holds no images: correct its path.")
    if wanted is not None and wanted > there:
        raise VitscopeError(
            f"{where}: the study asks for {wanted} images and the source has {there}: "
            f"lower `images`, or set it to null for all."
        )


def check_measured(where: str, wanted: int, there: int, split: str = "the split") -> None:
    """Refuse to measure more images than a split has."""
    if wanted > there:
        raise VitscopeError(
            f"{where}: the study measures {wanted} images and {split} has {there}: "
            f"lower analysis.images, or say in the split how many `images` it has."
        )


def check_scaling(where: str, values: Sequence[float]) -> None:
    """Refuse means and deviations of pixels from 0 to 255."""
    if not all(abs(value) <= 1 for value in values):
        raise VitscopeError(
            f"{where}: found {quoted([*values])}, allowed: numbers up to 1, as pixels are from 0 "
            f"to 1: divide by 255, mean and std alike."
        )
