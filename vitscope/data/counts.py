"""How many images a split has, against how many a study takes."""

from vitscope.errors import VitscopeError


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
