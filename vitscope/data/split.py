"""The artefact of a split: preprocessed images in one file that every job maps into memory.

A job reads some of the images of what may be a large file. So the file tells its own digest, and a
checksum of each image: nobody has to read more than the images that it wants.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.opening import open_source
from vitscope.data.source import UNKNOWN_LABEL, Sample, Source
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile, TensorWriter, row_sums

if TYPE_CHECKING:
    from torch import Tensor

# Which images: in any order, or a piece of all.
Rows = slice | Sequence[int] | npt.NDArray[np.int64]

INTERPOLATIONS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
ROWS_PER_WRITE = 256
# What the metadata call the SHA-256 of all that an artefact holds, in the order of its writing.
DIGEST = "data_sha256"
NO_DIGEST = "0" * 64


def select(count: int, images: int | None, seed: int | None) -> npt.NDArray[np.int64]:
    """Choose `images` of `count` rows, in ascending order; without a seed, the first ones."""
    wanted = count if images is None else images
    if seed is None:
        return np.arange(wanted)
    return np.sort(np.random.default_rng(seed).permutation(count)[:wanted])


def build(
    name: str, dataset: Mapping[str, Any], split: str, path: Path, file: Path | None = None
) -> None:
    """Write the artefact of a split of a study's data set.

    `file` is what was downloaded, if the source names no path.
    """
    source = open_source(dataset["source"], split, file)
    settings = dataset["splits"][split]
    where = f"data.{name}.splits.{split}"
    _check_counts(where, source, dataset["classes"], settings["images"])
    names = source.classes or [str(label) for label in range(dataset["classes"])]
    rows = select(len(source), settings["images"], settings["seed"])
    size = dataset["image_size"]
    tensors = {
        "images": ("U8", (len(rows), 3, size, size)),
        "labels": ("I64", (len(rows),)),
        "index": ("I64", (len(rows),)),
        "sums": ("I64", (len(rows),)),
        **{extra: ("I64", (len(rows),)) for extra in source.extra},
    }
    metadata = {
        "dataset": name,
        "split": split,
        "classes": json.dumps(names),
        "source_images": str(len(source)),
        "resize": json.dumps(dataset["resize"]),
        "interpolation": dataset["interpolation"],
        **source.provenance,
    }
    digest = sha256(json.dumps(metadata, sort_keys=True).encode())
    with TensorWriter(path, tensors, metadata | {DIGEST: NO_DIGEST}) as writer:
        for tensor, first, values in _written(where, source, rows, dataset):
            writer.write(tensor, first, values)
            digest.update(values.data)
        writer.amend(DIGEST, digest.hexdigest())


def _check_counts(where: str, source: Source, classes: int, images: int | None) -> None:
    if source.classes and len(source.classes) != classes:
        # A model has outputs for classes of which there may be no images.
        fewer = ", or put all images in one folder, without labels"
        raise VitscopeError(
            f"{where}: the source has {len(source.classes)} classes and the study says {classes}: "
            f"correct `classes` of the data set{fewer if len(source.classes) < classes else ''}."
        )
    if len(source) == 0:
        raise VitscopeError(f"{where}: the source holds no images: correct its path.")
    if images is not None and images > len(source):
        raise VitscopeError(
            f"{where}: the study asks for {images} images and the source has {len(source)}: "
            f"lower `images`, or set it to null for all."
        )


def _written(
    where: str, source: Source, rows: npt.NDArray[np.int64], dataset: Mapping[str, Any]
) -> Iterator[tuple[str, int, npt.NDArray[Any]]]:
    """Yield what stands in the artefact: a tensor's name, the first row, and the values."""
    yield "index", 0, rows
    samples = source.samples(rows)
    for first in range(0, len(rows), ROWS_PER_WRITE):
        group = rows[first : first + ROWS_PER_WRITE]
        chosen = [sample for _, sample in zip(group, samples, strict=False)]
        pixels = np.stack([preprocessed(sample.image, dataset, where) for sample in chosen])
        yield "images", first, pixels
        yield "sums", first, row_sums(pixels).view(np.int64)
        yield "labels", first, _checked(where, chosen, dataset["classes"])
        for column, extra in enumerate(source.extra):
            yield extra, first, np.array([sample.extra[column] for sample in chosen])


def _checked(where: str, samples: list[Sample], classes: int) -> npt.NDArray[np.int64]:
    """Return the labels, which must be classes or unknown."""
    labels = np.array([sample.label for sample in samples], np.int64)
    if labels.min() < UNKNOWN_LABEL or labels.max() >= classes:
        raise VitscopeError(
            f"{where}: the source has the label {labels.max()} and the study says {classes} "
            f"classes, which are numbered from 0: correct `classes` of the data set."
        )
    return labels


def preprocessed(
    image: Image.Image, dataset: Mapping[str, Any], where: str
) -> npt.NDArray[np.uint8]:
    """Resize the shorter side, cut out the centre, and return (3, size, size), as torchvision."""
    image = image.convert("RGB")
    size, resize = dataset["image_size"], dataset["resize"]
    if resize is not None:
        shorter = min(image.size)
        width, height = (resize if s == shorter else int(resize * s / shorter) for s in image.size)
        image = image.resize((width, height), INTERPOLATIONS[dataset["interpolation"]])
    width, height = image.size
    if min(width, height) < size:
        raise VitscopeError(
            f"{where}: an image of {width}x{height} pixels is smaller than image_size {size}: set "
            f"`resize` of the data set to at least {size}."
        )
    left, top = round((width - size) / 2), round((height - size) / 2)
    pixels = np.asarray(image.crop((left, top, left + size, top + size)))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


class Split:
    """A built artefact, mapped into memory."""

    def __init__(self, path: Path | str) -> None:
        self._file = TensorFile(path)
        missing = {"images", "sums", "labels", "index"} - set(self._file.names)
        if missing or DIGEST not in self._file.metadata:
            raise VitscopeError(f"{path} is not an artefact of images: delete it and run again.")
        self._images = self._file.mapped("images")
        self._sums = self._file.array("sums").view(np.uint64)
        self.labels: npt.NDArray[np.int64] = self._file.array("labels")
        self.classes: list[str] = json.loads(self._file.metadata["classes"])

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an image: (3, H, W)."""
        return self._file.shape("images")[1:]

    def images(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """Return images, (N, 3, H, W), of which every byte was checked."""
        chosen = np.ascontiguousarray(self._images[rows])
        wrong = row_sums(chosen) != self._sums[rows]
        if wrong.any():
            row = np.arange(len(self))[rows][wrong][0]
            raise VitscopeError(
                f"{self._file.path} is damaged: image {row} is not what was written; delete it and "
                f"run again."
            )
        return chosen

    @property
    def metadata(self) -> dict[str, str]:
        """What is known of where the images come from."""
        return self._file.metadata

    @property
    def digest(self) -> str:
        """The SHA-256 of what the artefact holds."""
        return self._file.metadata[DIGEST]

    def column(self, name: str) -> npt.NDArray[np.int64]:
        """Return a number per image: `index` in the source, or what the source knows besides."""
        return self._file.array(name)

    def normalized(self, rows: Rows, mean: Sequence[float], std: Sequence[float]) -> "Tensor":
        """Return images as a model expects them, float32 (N, 3, H, W)."""
        return normalized(self.images(rows), mean, std)

    def batches(
        self, rows: Sequence[int], batch_size: int, mean: Sequence[float], std: Sequence[float]
    ) -> Iterator["Tensor"]:
        """Yield the images of `rows` in batches, as a model expects them."""
        for first in range(0, len(rows), batch_size):
            yield self.normalized(rows[first : first + batch_size], mean, std)


def normalized(
    images: npt.NDArray[np.uint8], mean: Sequence[float], std: Sequence[float]
) -> "Tensor":
    """Scale pixels to 0..1, subtract the mean and divide by the deviation, in float32."""
    import torch

    scaled = torch.tensor(np.array(images)).float().div_(255)
    center, spread = (torch.tensor(value).view(3, 1, 1) for value in (mean, std))
    return scaled.sub_(center).div_(spread)
