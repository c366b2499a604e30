"""Which images of a split a network is shown, and their labels."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vitscope.data.counts import check_measured
from vitscope.data.split import Split, select
from vitscope.errors import VitscopeError

# The key in the metadata of latents that has the rows of their images.
ROWS = "rows"


def shard_rows(
    available: int, shard: int, images: int, seed: int | None, shard_size: int
) -> list[int]:
    """Return the rows of a split that make up a shard of the images that are measured."""
    check_measured("analysis.images", images, available)
    first = shard * shard_size
    rows: list[int] = select(available, images, seed)[first : first + shard_size].tolist()
    return rows


def parted(metadata: Mapping[str, str]) -> tuple[dict[str, str], list[int]]:
    """Return where latents come from, and the rows of their images in the split."""
    origin = {key: value for key, value in metadata.items() if key != ROWS}
    return origin, json.loads(metadata[ROWS])


def rows_to_classify(images: Split, wanted: int | None, seed: int | None) -> list[int]:
    """Return the rows of a split that are classified: all, or `wanted` of them."""
    if wanted is not None and wanted > len(images):
        raise VitscopeError(
            f"analysis: the study classifies {wanted} images and the split "
            f"'{images.metadata['split']}' of data.{images.metadata['dataset']} has "
            f"{len(images)}: lower `images`, or set it to null for all."
        )
    rows: list[int] = select(len(images), wanted, seed).tolist()
    return rows


def known_labels(images: Split, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the labels of rows of a split, all of which must be known."""
    labels = labels_of(images, rows)
    unknown = int((labels < 0).sum())
    if unknown:
        raise VitscopeError(
            f"data.{images.metadata['dataset']}: {unknown} of {len(labels)} images have no label, "
            f"so that no accuracy can be measured: use a source with labels."
        )
    return labels


def labels_of(images: Split, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the labels of rows of a split, -1 where one is unknown."""
    labels: npt.NDArray[np.int64] = np.array(images.labels[list(rows)])
    where = f"data.{images.metadata['dataset']}"
    outside = int((labels >= len(images.classes)).sum())
    if outside:
        raise VitscopeError(
            f"{where}: {outside} of {len(labels)} images have a label outside the "
            f"{len(images.classes)} classes: delete the artefact and run again."
        )
    return labels
