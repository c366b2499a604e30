"""Build and open the file of a split, which stores its images or only where to read them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.class_numbers import Numbering, list_classes, number_classes
from vitscope.data.opening import check_image_count, open_source
from vitscope.data.source import ImageFiles, Sample, Source
from vitscope.data.split import DIGEST, OUTPUTS, UNKNOWN_LABEL, Rows, Split, select
from vitscope.errors import VitscopeError, first_of
from vitscope.files.arrays import Array
from vitscope.files.images import Pixels, as_pixels
from vitscope.files.tensors import TensorFile, TensorWriter, row_sums
from vitscope.image_size import ImageSize, height_and_width

Integers = npt.NDArray[np.int64]

MODES = {1: "L", 3: "RGB"}
# The value of `resize` that scales an image until it just covers its final size.
COVER = "cover"
ROWS_PER_WRITE = 256
# Also keep this many images, the first ones, uncropped.
WHOLES = 16
NO_DIGEST = "0" * 64
IMAGENET_CLASSES = 1000
# How many files that cannot be used a message names.
MOST_REFUSED = 30
# The metadata key for the settings with which to read images that are not stored.
UNSTORED = "unstored"
# The data set's keys among the settings under UNSTORED.
READ_BY = ("source", "image_size", "resize", "interpolation")


def build_split_file(
    name: str, dataset: Mapping[str, Any], split: str, path: Path, download: Path | None = None
) -> None:
    """Write the file of a data set's split; read the `download` if the source names no path."""
    source = open_source(dataset["source"], split, download)
    settings = dataset["splits"][split]
    where = f"data.{name}.splits.{split}"
    outputs = _outputs_by_class(where, source, dataset)
    ours = Numbering([*source.classes], None) if outputs else None
    classes = ours or number_classes(where, source.classes, dataset, source.empty)
    check_image_count(where, settings["images"], len(source))
    rows = select(len(source), settings["images"], settings["seed"])
    metadata = {
        "dataset": name,
        "split": split,
        "classes": json.dumps(classes.names),
        "source_images": str(len(source)),
        "resize": json.dumps(dataset["resize"]),
        "interpolation": dataset["interpolation"],
        **source.provenance,
    }
    if outputs:
        metadata[OUTPUTS] = json.dumps(outputs)
    shape = (dataset.get("channels", 3), *height_and_width(dataset["image_size"]))
    if settings.get("stored", True):
        images = {"images": ("U8", (len(rows), *shape)), **integer_tensors(len(rows), source.extra)}
        masks = {"masks": ("U8", (len(rows), *shape[1:]))} if source.has_masks else {}
        tensors, written = (
            images | masks,
            _build_image_pieces(where, source, rows, dataset, classes),
        )
        if wholes := _uncropped_images(source, rows[:WHOLES], dataset):
            sizes = np.array([each.shape[:2] for each in wholes])
            flat = np.concatenate([each.ravel() for each in wholes])
            tensors |= {"whole_sizes": ("I64", sizes.shape), "wholes": ("U8", flat.shape)}
            written = chain(written, [("whole_sizes", 0, sizes), ("wholes", 0, flat)])
    else:
        made_by = {key: dataset[key] for key in READ_BY}
        metadata[UNSTORED] = json.dumps({**made_by, "split": split, "channels": shape[0]})
        tensors = dict.fromkeys(("labels", "index"), ("I64", (len(rows),)))
        # The labels are known without opening any image.
        labels = _to_class_numbers(where, cast(ImageFiles, source).labels(rows), classes)
        written = iter([("index", 0, rows), ("labels", 0, labels)])
    images_of = write_split(path, metadata, tensors, written, len(classes.names))
    # Show which number each class has: with a wrong numbering, every accuracy would be wrong.
    there = {
        number: f"{classes.names[number]} ({images_of[number]} images)"
        for number in np.flatnonzero(images_of).tolist()
    }
    print(f"{where}: classes: {list_classes(there) or 'no image has a label'}")


def integer_tensors(
    count: int, extra: tuple[str, ...] = ()
) -> dict[str, tuple[str, tuple[int, ...]]]:
    return dict.fromkeys(("labels", "index", "sums", *extra), ("I64", (count,)))


def write_split(
    path: Path,
    metadata: Mapping[str, str],
    tensors: Mapping[str, tuple[str, tuple[int, ...]]],
    written: Iterable[tuple[str, int, Array]],
    classes: int,
) -> Integers:
    """Write a split, with its digest, from pieces; return the number of images of each class.

    A piece is the name of a tensor, the first of the rows to write, and these rows.
    """
    digest = sha256(json.dumps(metadata, sort_keys=True).encode())
    images_of = np.zeros(classes, np.int64)
    with TensorWriter(path, tensors, {**metadata, DIGEST: NO_DIGEST}) as writer:
        for tensor, first, values in written:
            writer.write(tensor, first, values)
            digest.update(values.data)
            if tensor == "labels":
                images_of += np.bincount(values[values >= 0], minlength=classes)
        writer.amend(DIGEST, digest.hexdigest())
    return images_of


def _outputs_by_class(
    where: str, source: Source, dataset: Mapping[str, Any]
) -> list[list[int]] | None:
    """Return the network outputs of each class of a source; None without any, or without labels."""
    outputs = source.outputs
    if outputs is None or dataset["classes"] in (None, IMAGENET_CLASSES):
        return outputs if dataset["classes"] else None
    raise VitscopeError(
        f"{where}: found {dataset['classes']} classes, allowed: {IMAGENET_CLASSES}, which the "
        f"{len(outputs)} categories of this source are made of, or null."
    )


def _build_mask(
    sample: Sample, dataset: Mapping[str, Any], shape: tuple[int, ...], where: str
) -> Pixels:
    if sample.mask is None:
        return np.zeros(shape, np.uint8)
    if sample.mask.size != sample.image.size:
        raise VitscopeError(
            f"{where}: a mask has {sample.mask.width}x{sample.mask.height} pixels and its image "
            f"{sample.image.width}x{sample.image.height}: give both the same size."
        )
    mask: Pixels = preprocess(sample.mask, {**dataset, "channels": 1}, where)[0]
    return mask


def _uncropped_images(source: Source, rows: Integers, dataset: Mapping[str, Any]) -> list[Pixels]:
    """Return images before cropping.

    The list is empty if no image is cropped, or without `resize`, when images may have any size.
    """
    if dataset["resize"] is None:
        return []
    size = height_and_width(dataset["image_size"])
    found = [as_pixels(_convert_and_resize(each.image, dataset)) for each in source.samples(rows)]
    return found if any(each.shape[:2] != size for each in found) else []


def _build_image_pieces(
    where: str, source: Source, rows: Integers, dataset: Mapping[str, Any], classes: Numbering
) -> Iterator[tuple[str, int, Array]]:
    """Yield the content of the file in pieces, as `write_split` takes them."""
    yield "index", 0, rows
    samples = source.samples(rows)
    for first in range(0, len(rows), ROWS_PER_WRITE):
        group = rows[first : first + ROWS_PER_WRITE]
        try:
            chosen = [sample for _, sample in zip(group, samples, strict=False)]
            read = [preprocess(each.image, dataset, where, each.name) for each in chosen]
        except VitscopeError as error:
            raise _refusal_of_all(where, source, rows, dataset, error) from error
        pixels = np.stack(read)
        yield "images", first, pixels
        yield "sums", first, row_sums(pixels).view(np.int64)
        if source.has_masks:
            shape = pixels.shape[2:]
            masks = [_build_mask(each, dataset, shape, where) for each in chosen]
            yield "masks", first, np.stack(masks)
        yield "labels", first, _to_class_numbers(where, [each.label for each in chosen], classes)
        for column, extra in enumerate(source.extra):
            yield extra, first, np.array([sample.extra[column] for sample in chosen])


def _to_class_numbers(where: str, found: list[int], classes: Numbering) -> Integers:
    """Map labels to class numbers, and keep unknown labels; refuse labels of no class."""
    if not classes.names:
        return np.full(len(found), UNKNOWN_LABEL, np.int64)
    labels = np.array(found, np.int64)
    known = len(classes.names if classes.numbers is None else classes.numbers)
    if labels.min() < UNKNOWN_LABEL or labels.max() >= known:
        raise VitscopeError(
            f"{where}: the source has the label {labels.max()} and "
            f"{'the study says' if classes.numbers is None else 'names'} {known} "
            f"classes, which are numbered from 0: correct `classes` of the data set."
        )
    if classes.numbers is None:
        return labels
    return np.array([*classes.numbers, UNKNOWN_LABEL])[labels]


def _refusal_of_all(
    where: str, source: Source, rows: Integers, dataset: Mapping[str, Any], first: VitscopeError
) -> VitscopeError:
    """Return one refusal of every file that cannot be used, where `first` refused one of them."""
    if not isinstance(source, ImageFiles):
        return first
    wrong = []
    for row in rows:
        try:
            for sample in source.samples(np.array([row])):
                preprocess(sample.image, dataset, where, sample.name)
        except VitscopeError as error:
            wrong.append(str(error).removeprefix(f"{where}: ").rstrip("."))
    if len(wrong) < 2:
        return first
    left = len(rows) - len(wrong)
    return VitscopeError(
        f"{where}: {len(wrong)} of {len(rows)} images cannot be used; without them write "
        f"`images: {left}`, or fewer: {first_of(wrong, MOST_REFUSED)}."
    )


def preprocess(
    image: Image.Image, dataset: Mapping[str, Any], where: str, name: str = ""
) -> Pixels:
    """Resize an image, crop its centre as torchvision does, and return its pixels, (C, H, W)."""
    image, size = _convert_and_resize(image, dataset), dataset["image_size"]
    height, width = height_and_width(size)
    if image.width < width or image.height < height:
        raise VitscopeError(
            f"{where}: {name or 'an image'} of {image.width}x{image.height} pixels is smaller than "
            f"image_size {size}: set `resize` of the data set to at least {size}."
        )
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    pixels = as_pixels(image.crop((left, top, left + width, top + height)))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _convert_and_resize(image: Image.Image, dataset: Mapping[str, Any]) -> Image.Image:
    """Convert an image to the data set's channels, and resize it for cropping."""
    image = image.convert(MODES[dataset.get("channels", 3)])
    if dataset["resize"] is None:
        return image
    resized = _size_before_crop(image.size, dataset["resize"], dataset["image_size"])
    return image.resize(resized, Image.Resampling[dataset["interpolation"].upper()])


def _size_before_crop(there: tuple[int, int], resize: Any, size: ImageSize) -> tuple[int, int]:
    """Return the width and height to resize an image of size `there` to.

    If `resize` is a pair of height and width, that is the size. Otherwise, the image keeps its
    proportions and just covers a square of side `resize` or, for `COVER`, the final `size`.
    """
    height, width = height_and_width(size if resize == COVER else resize)
    if not isinstance(resize, int | str):
        return width, height
    wide, high = there
    if width * high >= height * wide:
        return width, int(width * high / wide)
    return int(height * wide / high), height


class UnstoredSplit(Split):
    HOLDS = frozenset({"labels", "index"})
    has_pixels = True

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self._dataset: dict[str, Any] = json.loads(self.metadata[UNSTORED])
        self._index = self.column("index")
        self._source = open_source(self._dataset["source"], self._dataset["split"])
        if not self._source.provenance.items() <= self.metadata.items():
            raise VitscopeError(
                f"{self._dataset['source']['path']} holds other files than when {path} was "
                f"written: delete that file and run again."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        return self._dataset["channels"], *height_and_width(self._dataset["image_size"])

    def images(self, rows: Rows) -> Array:
        where = str(self._file.path)
        return np.stack(
            [preprocess(each, self._dataset, where) for each in self._source_images(rows)]
        )

    def pictures(self, rows: Rows) -> list[Array]:
        mode = MODES[self._dataset["channels"]]
        return [as_pixels(each.convert(mode)) for each in self._source_images(rows)]

    def whole(self, row: int) -> Pixels | None:
        found = _uncropped_images(self._source, self._index[[row]], self._dataset)
        return found[0] if found else None

    def _source_images(self, rows: Rows) -> Iterator[Image.Image]:
        return (sample.image for sample in self._source.samples(self._index[rows]))


def open_split_file(path: Path | str) -> Split:
    return UnstoredSplit(path) if UNSTORED in TensorFile(path).metadata else Split(path)
