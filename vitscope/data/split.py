"""A split as jobs read it: a memory-mapped file of preprocessed images."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vitscope.data.opening import check_measured
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile, row_sums

if TYPE_CHECKING:
    from torch import Tensor


# Rows of a split: a slice, or indices in any order.
Rows = slice | Sequence[int] | npt.NDArray[np.int64]

UNKNOWN_LABEL = -1
# The metadata key for the SHA-256 of all tensors, in the order in which they were written.
DIGEST = "data_sha256"
# The metadata key for the network outputs of each class, if a class may have several.
OUTPUTS = "outputs"
# In a file of latents, the metadata key for the rows of its images in their split.
ROWS = "rows"


def select(count: int, images: int | None, seed: int | None) -> npt.NDArray[np.int64]:
    """Choose `images` of `count` rows at random and sort them; without a seed, take the first."""
    wanted = count if images is None else images
    if seed is None:
        return np.arange(wanted)
    return np.sort(np.random.default_rng(seed).permutation(count)[:wanted])


class Split:
    HOLDS = frozenset({"images", "sums", "labels", "index"})

    def __init__(self, path: Path | str) -> None:
        self._file = TensorFile(path)
        if self.HOLDS - set(self._file.names) or DIGEST not in self._file.metadata:
            raise VitscopeError(f"{path} is not an artefact of images: delete it and run again.")
        if "images" in self.HOLDS:
            self._images = self._file.mapped("images")
            # The checksum of each image: equal images have equal checksums.
            self.sums: npt.NDArray[np.uint64] = self._file.array("sums").view(np.uint64)
        self.labels: npt.NDArray[np.int64] = self._file.array("labels")
        self.classes: list[str] = json.loads(self._file.metadata["classes"])

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def outputs(self) -> list[list[int]] | None:
        """The network outputs of each class, or None if each class has one."""
        found = self._file.metadata.get(OUTPUTS)
        return None if found is None else json.loads(found)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._file.shape("images")[1:]

    @property
    def has_pixels(self) -> bool:
        """Whether images are pixels from 0 to 255, not values ready for a network."""
        return self._file.dtype("images") == "U8"

    def images(self, rows: Rows) -> npt.NDArray[Any]:
        """Return images, (N, C, H, W), after checking every byte."""
        numbers = np.arange(len(self))[rows]
        if len(numbers) and (np.diff(numbers) == 1).all():
            # Read these rows instead of mapping them: mapped pages count as the process's memory.
            chosen = np.empty((len(numbers), *self.shape), self._images.dtype)
            self._file.read("images", int(numbers[0]), chosen)
        else:
            chosen = np.ascontiguousarray(self._images[rows])
        wrong = row_sums(chosen) != self.sums[rows]
        if wrong.any():
            raise VitscopeError(
                f"{self._file.path} is damaged: image {numbers[wrong][0]} is not what was written; "
                f"delete it and run again."
            )
        return chosen

    def pictures(self, rows: Rows) -> list[npt.NDArray[Any]]:
        """Return images, each (H, W, C), in the largest size available."""
        return [*self.images(rows).transpose(0, 2, 3, 1)]

    def mask(self, row: int) -> npt.NDArray[np.float64] | None:
        """Return, for each pixel, the share that shows the image's subject; None without a mask."""
        if "masks" not in self._file.names:
            return None
        pixels = self._file.array("masks")[row]
        return pixels / 255 if pixels.any() else None

    def whole(self, row: int) -> npt.NDArray[np.uint8] | None:
        """Return an image before cropping, (H, W, C); None if it is not stored."""
        if "wholes" not in self._file.names or row >= len(sizes := self.column("whole_sizes")):
            return None
        channels, ends = self.shape[0], sizes.prod(1).cumsum()[:row]
        flat: npt.NDArray[np.uint8] = self._file.array("wholes").reshape(-1, channels)
        return np.split(flat, ends)[-1][: sizes[row].prod()].reshape(*sizes[row], channels)

    @property
    def metadata(self) -> dict[str, str]:
        return self._file.metadata

    @property
    def digest(self) -> str:
        return self._file.metadata[DIGEST]

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """Return an integer per image: its `index` in the source, or an `extra` of the source."""
        return self._file.array(name)

    def normalize(self, rows: Rows, mean: Sequence[float], std: Sequence[float]) -> "Tensor":
        return normalize(self.images(rows), mean, std)

    def batches(
        self, rows: Sequence[int], batch_size: int, mean: Sequence[float], std: Sequence[float]
    ) -> Iterator["Tensor"]:
        for first in range(0, len(rows), batch_size):
            yield self.normalize(rows[first : first + batch_size], mean, std)


def normalize(images: npt.NDArray[Any], mean: Sequence[float], std: Sequence[float]) -> "Tensor":
    """Scale pixels to 0..1, subtract the mean and divide by the deviation, in float32."""
    import torch

    center, spread = (torch.tensor(value).view(-1, 1, 1) for value in (mean, std))
    return standardize(torch.tensor(np.array(images)), center, spread)


def standardize(images: "Tensor", center: "Tensor", spread: "Tensor") -> "Tensor":
    """Normalize a tensor of images on any device; change it in place if it is float32."""
    import torch

    scaled = images.float()
    if images.dtype == torch.uint8:
        scaled.div_(255)
    return scaled.sub_(center).div_(spread)


def shard_rows(
    available: int, shard: int, images: int, seed: int | None, shard_size: int
) -> list[int]:
    check_measured("analysis.images", images, available)
    first = shard * shard_size
    rows: list[int] = select(available, images, seed)[first : first + shard_size].tolist()
    return rows


def origin_and_rows(metadata: Mapping[str, str]) -> tuple[dict[str, str], list[int]]:
    """Separate the metadata of latents into their origin and the rows of their images."""
    origin = {key: value for key, value in metadata.items() if key != ROWS}
    return origin, json.loads(metadata[ROWS])


def choose_rows_of_split(
    images: Split, wanted: int | None, seed: int | None, does: str
) -> npt.NDArray[np.int64]:
    """Return all rows of a split, or `wanted` of them; an error message begins with `does`."""
    if wanted is not None and wanted > len(images):
        raise VitscopeError(
            f"{does} {wanted} images and the split '{images.metadata['split']}' of "
            f"data.{images.metadata['dataset']} has {len(images)}: lower `images`, or set it to "
            f"null for all."
        )
    return select(len(images), wanted, seed)


def rows_to_classify(images: Split, wanted: int | None, seed: int | None) -> list[int]:
    rows: list[int] = choose_rows_of_split(
        images, wanted, seed, "analysis: the study classifies"
    ).tolist()
    return rows


def known_labels(images: Split, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    labels = labels_of(images, rows)
    unknown = int((labels < 0).sum())
    if unknown:
        raise VitscopeError(
            f"data.{images.metadata['dataset']}: {unknown} of {len(labels)} images have no label, "
            f"so that no accuracy can be measured: use a source with labels."
        )
    return labels


def labels_of(images: Split, rows: Sequence[int]) -> npt.NDArray[np.int64]:
    labels: npt.NDArray[np.int64] = np.array(images.labels[list(rows)])
    outside = int((labels >= len(images.classes)).sum())
    if outside:
        raise VitscopeError(
            f"data.{images.metadata['dataset']}: {outside} of {len(labels)} images have a label "
            f"outside the {len(images.classes)} classes: delete the artefact and run again."
        )
    return labels
