"""Build the file of one corruption: images from an official archive, or corrupted here."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitscope.corruptions.corrupted import tensor_name
from vitscope.corruptions.official import OfficialImages
from vitscope.corruptions.registry import corrupt
from vitscope.data.split import Split, select
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter

Integers = npt.NDArray[np.int64]

ROWS_PER_WRITE = 256


def build(
    split: Split,
    images: int | None,
    corruption: str,
    severities: Sequence[int],
    seed: int | None,
    path: Path | str,
    official: Path | None = None,
) -> None:
    """Write images of a split under one corruption, at all severities.

    Where an official archive is given, or its folder, they are read from it; else they are made.
    """
    rows = _choose_rows(split, images, seed)
    if official is not None:
        images_of = OfficialImages(official, corruption, split, rows).images
    else:

        def images_of(rows: Integers, severity: int) -> npt.NDArray[np.uint8]:
            return corrupt(split.images(rows), corruption, severity, rows, seed or 0)

    shape = (len(rows), *split.shape)
    tensors = {tensor_name(severity): ("U8", shape) for severity in severities}
    tensors["rows"] = ("I64", (len(rows),))
    made = "vitscope" if official is None else official.name
    metadata = {**split.metadata, "corruption": corruption, "corrupted_by": made}
    with TensorWriter(path, tensors, metadata) as writer:
        writer.write("rows", 0, rows)
        for first in range(0, len(rows), ROWS_PER_WRITE):
            some = rows[first : first + ROWS_PER_WRITE]
            for severity in severities:
                writer.write(tensor_name(severity), first, images_of(some, severity))


def _choose_rows(split: Split, images: int | None, seed: int | None) -> Integers:
    if images is not None and images > len(split):
        raise VitscopeError(
            f"analysis.robustness: the study corrupts {images} images and the split "
            f"'{split.metadata['split']}' of data.{split.metadata['dataset']} has {len(split)}: "
            f"lower `images`, or set it to null for all."
        )
    return select(len(split), images, seed)
