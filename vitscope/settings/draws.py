"""Where batches of augmented images begin."""

from collections.abc import Mapping
from math import ceil
from typing import Any


def images_of_a_draw(recipe: Mapping[str, Any]) -> int:
    """Return how many images are mixed among themselves: those of a batch, or one if none are."""
    return int(recipe["batch_size"]) if recipe["mixup"] or recipe["cutmix"] else 1


def images_apart(largest: int, drawn_together: int) -> int:
    """Return how many images lie between the first ones of two batches with their own draws.

    `largest` is the number of images of the largest batch, `drawn_together` that of a draw.
    """
    return ceil(largest / drawn_together) * drawn_together
