"""Build the file of a split: open its source, preprocess the chosen images, write them."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.opening import open_source
from vitscope.data.source import Sample, Source
from vitscope.data.split import DIGEST, UNKNOWN_LABEL, select
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter, row_sums

Integers = npt.NDArray[np.int64]

INTERPOLATIONS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
ROWS_PER_WRITE = 256
NO_DIGEST = "0" * 64


def build(
    name: str, dataset: Mapping[str, Any], split: str, path: Path, download: Path | None = None
) -> None:
    """Write the file of a split of a study's data set.

    `download` is the archive of the source, if the study names no path.
    """
    source = open_source(dataset["source"], split, download)
    settings = dataset["splits"][split]
    where = f"data.{name}.splits.{split}"
    _check_counts(where, source, dataset["classes"], settings["images"])
    rows = select(len(source), settings["images"], settings["seed"])
    metadata = _metadata(name, dataset, split, source)
    digest = sha256(json.dumps(metadata, sort_keys=True).encode())
    tensors = _tensors(len(rows), dataset["image_size"], source.extra)
    with TensorWriter(path, tensors, metadata | {DIGEST: NO_DIGEST}) as writer:
        for tensor, first, values in _written(where, source, rows, dataset):
            writer.write(tensor, first, values)
            digest.update(values.data)
        writer.amend(DIGEST, digest.hexdigest())


def _check_counts(where: str, source: Source, classes: int, images: int | None) -> None:
    if source.classes and len(source.classes) != classes:
        # A folder may hold images of fewer classes than the model tells apart: without labels, it
        # can still be measured.
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


def _metadata(name: str, dataset: Mapping[str, Any], split: str, source: Source) -> dict[str, str]:
    classes = source.classes or [str(label) for label in range(dataset["classes"])]
    return {
        "dataset": name,
        "split": split,
        "classes": json.dumps(classes),
        "source_images": str(len(source)),
        "resize": json.dumps(dataset["resize"]),
        "interpolation": dataset["interpolation"],
        **source.provenance,
    }


def _tensors(
    count: int, size: int, extra: tuple[str, ...]
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return the type and the shape of every tensor of the file."""
    numbers = ("labels", "index", "sums", *extra)
    return {"images": ("U8", (count, 3, size, size)), **dict.fromkeys(numbers, ("I64", (count,)))}


def _written(
    where: str, source: Source, rows: Integers, dataset: Mapping[str, Any]
) -> Iterator[tuple[str, int, npt.NDArray[Any]]]:
    """Yield what the file holds, piece by piece: a tensor's name, the first row, the values."""
    yield "index", 0, rows
    samples = source.samples(rows)
    for first in range(0, len(rows), ROWS_PER_WRITE):
        group = rows[first : first + ROWS_PER_WRITE]
        chosen = [sample for _, sample in zip(group, samples, strict=False)]
        pixels = np.stack([preprocessed(sample.image, dataset, where) for sample in chosen])
        yield "images", first, pixels
        yield "sums", first, row_sums(pixels).view(np.int64)
        yield "labels", first, _checked_labels(where, chosen, dataset["classes"])
        for column, extra in enumerate(source.extra):
            yield extra, first, np.array([sample.extra[column] for sample in chosen])


def _checked_labels(where: str, samples: list[Sample], classes: int) -> Integers:
    """Return the labels; refuse any that is neither a class nor unknown."""
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
