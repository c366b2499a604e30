"""Where batches of augmented images begin."""

from math import ceil


def images_apart(largest: int, drawn_together: int) -> int:
    """Return how many images lie between the first ones of two batches with their own draws.

    `largest` is the number of images of the largest batch, `drawn_together` that of a draw.
    """
    return ceil(largest / drawn_together) * drawn_together
