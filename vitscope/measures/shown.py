"""Get the images that figures show beside attention and other maps, as pictures for tables."""

import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor

from vitscope.data.split import shard_rows
from vitscope.files.arrays import Array
from vitscope.files.images import as_picture
from vitscope.measures.given import OnModel
from vitscope.networks.running.predictions import predict_among


class ShownImage(NamedTuple):
    """Holds an image to show: its row in the split, a PNG file, and the input of the network."""

    row: int
    picture: bytes
    image: Tensor


def rows_shown(given: OnModel, shown: int, images: int, seed: int | None) -> list[int]:
    """Return the rows in the split of the first `shown` measured images."""
    return shard_rows(len(given.images), 0, images, seed, shard_size=images)[:shown]


def images_shown(given: OnModel, shown: int, images: int, seed: int | None) -> Iterator[ShownImage]:
    """Yield the first `shown` measured images."""
    rows = rows_shown(given, shown, images, seed)
    mean, std = given.settings["mean"], given.settings["std"]
    for row, image in zip(rows, given.images.images(rows), strict=True):
        taken = given.images.normalize([row], mean, std).to(given.device)
        if image.dtype != np.uint8:
            low, high = float(image.min()), float(image.max())
            image = np.round(255 * (image - low) / max(high - low, 1e-12)).astype(np.uint8)
        yield ShownImage(row, _encode_png(image.transpose(1, 2, 0)), taken)


def whole_picture(given: OnModel, row: int) -> bytes | None:
    """Return the picture of an image before it was cropped; None if the split does not keep it."""
    pixels = given.images.whole(row)
    return None if pixels is None else _encode_png(pixels)


def name_shown_class(given: OnModel, returned: Any, of_class: int | None = None) -> dict[str, Any]:
    """Return the name and the probability of the class `of_class`; if None, of the predicted one.

    Both are None if the model has no classes.
    """
    if given.settings["classes"] is None:
        return {"class_name": None, "confidence": None}
    logits = predict_among(returned[:1], given.images.outputs)
    probability = logits[0].double().softmax(0)
    number = int(probability.argmax()) if of_class is None else of_class
    names = given.images.classes
    # Use the number if the data set has no names for the classes of the network.
    name = names[number] if len(names) == len(probability) else str(number)
    return {"class_name": name, "confidence": float(probability[number])}


def on_subject(
    weights: Array, grid: tuple[int, int], mask: Array | None
) -> dict[str, float | None]:
    """Return the share of a map that is on the subject, and the subject's share of the image.

    Both are null without a mask of the subject.
    """
    if mask is None:
        return {"on_subject": None, "subject": None}
    plane = Image.fromarray(mask.astype(np.float32))
    # Average the mask over the cell of each position.
    covered = np.asarray(plane.resize(grid[::-1], Image.Resampling.BOX))
    total = weights.sum()
    return {
        # A map of zeros has no share on the subject.
        "on_subject": float(weights @ covered.ravel() / total) if total else None,
        "subject": float(covered.mean()),
    }


def _encode_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    written = io.BytesIO()
    as_picture(pixels).save(written, "PNG")
    return written.getvalue()
