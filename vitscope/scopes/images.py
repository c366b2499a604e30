"""Write images, from memory or a folder, to the file of a split, piece by piece and in order."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

from vitscope.data.building import COVER, build_split_file, integer_tensors, preprocess, write_split
from vitscope.data.class_numbers import NAMED, number_classes
from vitscope.data.opening import check_scaling, open_source
from vitscope.data.source import ImageFiles
from vitscope.data.split import UNKNOWN_LABEL, Split
from vitscope.errors import VitscopeError, first_of
from vitscope.files.arrays import Array
from vitscope.files.images import in_rgb
from vitscope.files.tensors import row_sums
from vitscope.image_size import ImageSize, height_and_width, in_short

# Images, and the indices of their classes if labels come with the images.
Piece = tuple[Array, Array | None]
# Returns the number of classes for images of a shape, or None if the network has no logits.
Outputs = Callable[[tuple[int, ...]], int | None]

IMAGES_PER_PIECE = 256
# Keys of images and labels in mappings, as in data sets of Hugging Face.
IMAGE_KEYS = ("image", "images", "img", "pixel_values")
LABEL_KEYS = ("label", "labels", "fine_label", "target")
DATASET, SPLIT = "images", "test"
CHANNELS = (1, 3)


@dataclass(frozen=True)
class WantedImages:
    """What a caller says about the images; pictures are cropped to `size`."""

    mean: Sequence[float] | float | None
    std: Sequence[float] | float | None
    size: ImageSize | None
    class_names: Sequence[str] | None = None
    # The description that comes with the network, if any: its image size, mean and std.
    of_network: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """The split of the stored images, and the network's classes and scaling.

    `notes` say what was assumed about images that the caller did not describe in full.
    """

    split: Split
    classes: int | None
    mean: list[float]
    std: list[float]
    notes: list[str]


def split_file_in(folder: Path) -> Path:
    return folder / "data" / DATASET / f"{SPLIT}.safetensors"


def store_scope_images(
    images: Any, labels: Any, wanted: WantedImages, outputs: Outputs, folder: Path
) -> Stored:
    """Write images and labels to a file in a folder, as a split of a data set."""
    path = split_file_in(folder)
    if isinstance(images, str | Path):
        return _store_scope_image_folder(Path(images), wanted, outputs, path)
    pieces = _pieces_of_scope_images(images, wanted)
    first = next(pieces, None)
    if first is None:
        raise VitscopeError("There is no image among `images`: give at least one.")
    image_format = _ScopeImageFormat.of(first[0], wanted)
    classes = outputs(image_format.shape)
    raw = folder / "images.raw"
    try:
        found, exact = _spool_scope_images(chain([first], pieces), image_format, raw)
        numbers = _check_labels_fit_classes(found if labels is None else labels, found, classes)
        dataset = {"classes": classes, "class_names": wanted.class_names}
        names = number_classes("look", [], dataset).names
        _write_split_of_scope_images(raw, image_format, exact, numbers, names, path)
    finally:
        raw.unlink(missing_ok=True)
    return Stored(Split(path), classes, image_format.mean, image_format.std, image_format.notes)


def _store_scope_image_folder(
    folder: Path, wanted: WantedImages, outputs: Outputs, path: Path
) -> Stored:
    source = {"kind": "folder", "path": str(folder)}
    opened = cast(ImageFiles, open_source(source, SPLIT))
    own = opened.one_size()
    size = _size_to_crop(wanted, in_short(*own) if own else None)
    classes = outputs((3, *height_and_width(size))) if size else None
    _ask_for_missing_image_settings(wanted, size, classes, opened, folder)
    mean, std, notes = _scaling_of_scope_images(wanted, 3, "images of a folder")
    height, width = height_and_width(size or 0)
    dataset = {
        "source": source,
        "classes": classes,
        "class_names": wanted.class_names,
        "class_index": None,
        "channels": len(mean),
        "image_size": size,
        "resize": COVER,
        "interpolation": "bicubic",
        "splits": {SPLIT: {"images": None, "seed": None}},
    }
    build_split_file(DATASET, dataset, SPLIT, path)
    if (height, width) != own:
        notes.append(f"images: resized to cover {height}x{width} pixels, the centre is cut out")
    return Stored(Split(path), classes, mean, std, notes)


def _ask_for_missing_image_settings(
    wanted: WantedImages,
    size: ImageSize | None,
    classes: int | None,
    folder: ImageFiles,
    path: Path,
) -> None:
    missing = []
    if _known_scaling(wanted) is None:
        missing.append("mean= and std=, of pixels from 0 to 1 (mean=0, std=1 leaves them)")
    if size is None:
        missing.append("image_size=, to which they are cut, since not all have one size")
    found = len(folder.classes)
    known = size is not None and classes in (None, found)
    if found and wanted.class_names is None and not known:
        empty = f" and {first_of(folder.empty, NAMED)} without an image" if folder.empty else ""
        count, reason = (
            (f"{classes} classes", f"since there are folders of {found}{empty}")
            if classes
            else ("classes", f"if these are not {found}, of which there are folders{empty}")
        )
        missing.append(
            f"class_names=, the names of all {count} in the order of the outputs, {reason}"
        )
    if missing:
        raise VitscopeError(
            f"{path}: nothing says how the network takes these images: give {'; '.join(missing)}."
        )


def _size_to_crop(wanted: WantedImages, own: ImageSize | None) -> ImageSize | None:
    """Return the size to crop pictures to: the caller's, else the network's, else their `own`."""
    size = wanted.size or wanted.of_network.get("input_size", ())[1:] or own
    return None if size is None else in_short(*height_and_width(size))


def _pieces_of_scope_images(images: Any, wanted: WantedImages) -> Iterator[Piece]:
    if hasattr(images, "detach") or isinstance(images, np.ndarray):
        if images.ndim != 4:
            raise VitscopeError(
                f"`images` has the shape {tuple(images.shape)}, allowed: (N, C, H, W) or "
                f"(N, H, W, C)."
            )
        for first in range(0, len(images), IMAGES_PER_PIECE):
            yield _as_numpy(images[first : first + IMAGES_PER_PIECE]), None
    elif _is_loader(images):
        yield from map(_checked_batch, images)
    else:
        # Index up to the length: data sets of torch may not raise an IndexError at their end.
        items = (
            map(images.__getitem__, range(len(images))) if hasattr(images, "__len__") else images
        )
        yield from _stack_scope_images(map(_image_and_labels, items), wanted)


def _is_loader(images: Any) -> bool:
    """Return whether `images` is a loader of batches; what can be indexed holds single images."""
    if not isinstance(images, Iterable) and not hasattr(images, "__getitem__"):
        raise VitscopeError(
            f"`images` is a {type(images).__name__}, allowed: a tensor, an array, a DataLoader, a "
            f"data set, a list of pictures, or the path of a folder."
        )
    return not hasattr(images, "__getitem__")


def _image_and_labels(item: Any, dimensions: int = 3) -> Piece:
    """Return the image or the batch in an element of a data set, and the labels that come with it.

    Both are found by their keys. Without such keys, the first entry with `dimensions` dimensions
    is the image, and the first integers after this entry, one for each image, are the labels.
    """
    if not isinstance(item, Mapping | tuple | list):
        return item, None
    entries = item if isinstance(item, Mapping) else dict(enumerate(item))
    named = [key for key in IMAGE_KEYS if key in entries]
    of_images = next((k for k in (*named, *entries) if _is_image(entries[k], dimensions)), None)
    if of_images is None:
        kinds = (f"{key} ({type(each).__name__})" for key, each in entries.items())
        raise VitscopeError(
            f"An element of `images` has the entries {', '.join(kinds)}, allowed: one of "
            f"{', '.join(IMAGE_KEYS)} among them, or an array of {dimensions} dimensions."
        )
    images, behind = entries[of_images], [*entries][[*entries].index(of_images) + 1 :]
    count = len(images) if dimensions > 3 else 1
    of_labels = [key for key in (*LABEL_KEYS, *behind) if key in entries]
    found = (_as_labels(entries[key], count) for key in of_labels)
    return images, next((labels for labels in found if labels is not None), None)


def _is_image(value: Any, dimensions: int) -> bool:
    return isinstance(value, Image.Image) or getattr(value, "ndim", 0) == dimensions


def _as_labels(value: Any, count: int) -> Array | None:
    try:
        array = _as_numpy(value)
    except ValueError:  # The rows differ in length.
        return None
    return array.reshape(-1) if array.dtype.kind in "iu" and array.size == count else None


def _checked_batch(batch: Any) -> Piece:
    images, labels = _image_and_labels(batch, dimensions=4)
    array = _as_numpy(images)
    if array.ndim != 4:
        raise VitscopeError(
            f"`images` yields values of the shape {array.shape}, allowed: batches (N, C, H, W)."
        )
    return array, labels


def _stack_scope_images(items: Iterator[Piece], wanted: WantedImages) -> Iterator[Piece]:
    while group := [*islice(items, IMAGES_PER_PIECE)]:
        arrays = [_crop_scope_picture(image, wanted) for image, _ in group]
        if any(array.shape != arrays[0].shape for array in arrays):
            raise VitscopeError(
                f"The images have different shapes, {arrays[0].shape} among them: give arrays of "
                f"one shape, or pictures of Pillow with image_size=, to which they are cut."
            )
        known = [label for _, label in group if label is not None]
        yield np.stack(arrays), np.concatenate(known) if len(known) == len(group) else None


def _crop_scope_picture(image: Any, wanted: WantedImages) -> Array:
    """Return an image as an array (C, H, W); resize and crop a picture of Pillow if needed."""
    if not isinstance(image, Image.Image):
        return _as_numpy(image)
    own = in_short(image.height, image.width)
    size = _size_to_crop(wanted, own) or own
    dataset = {
        "channels": 1 if Image.getmodebase(image.mode) == "L" else 3,
        "image_size": size,
        "resize": None if size == own else COVER,
        "interpolation": "bicubic",
    }
    return preprocess(in_rgb(image, "A picture of `images`"), dataset, "images")


def _as_numpy(values: Any) -> Array:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        # NumPy has no bfloat16.
        values = values.float() if values.is_floating_point() else values
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


@dataclass(frozen=True)
class _ScopeImageFormat:
    """How images are stored, decided by the first piece; their values are divided by `scale`."""

    shape: tuple[int, ...]
    channels_last: bool
    is_integer: bool
    scale: float
    is_normalized: bool
    mean: list[float]
    std: list[float]
    notes: list[str]

    @classmethod
    def of(cls, images: Array, wanted: WantedImages) -> "_ScopeImageFormat":
        """Decide how to store all images, from the first images and from what the caller says."""
        last = images.shape[1] not in CHANNELS and images.shape[-1] in CHANNELS
        notes = ["images: (N, H, W, C) as they are given, channels come first now"] * last
        shape = (images.shape[3], *images.shape[1:3]) if last else images.shape[1:]
        is_integer = images.dtype.kind in "ui"
        if images.dtype.kind not in "uif":
            raise VitscopeError(f"The images are of the type {images.dtype}, allowed: numbers.")
        if is_integer or wanted.mean is not None:
            scale = 1.0 if not is_integer and float(images.max()) <= 1 else 255.0
            what = "8-bit images" if is_integer else "images"
            mean, std, more = _scaling_of_scope_images(wanted, shape[0], what)
            notes += more
            if scale == 255 and not is_integer:
                notes.append("images: values from 0 to 255, divided by 255")
            return cls(shape, last, is_integer, scale, False, mean, std, notes)
        if float(images.min()) >= 0 and float(images.max()) > 16:
            raise VitscopeError(
                f"The images have values from {images.min():g} to {images.max():g}, as pixels "
                f"have, and nothing says how the network takes these: give mean= and std=, of "
                f"pixels from 0 to 1."
            )
        notes.append("images: taken as the network takes them, since no mean and std are given")
        zeros, ones = [0.0] * shape[0], [1.0] * shape[0]
        return cls(shape, last, is_integer, 1.0, True, zeros, ones, notes)

    def taken(self, images: Array) -> Array:
        """Return a piece as it is stored: uint8 for integers, else float32 divided by `scale`."""
        images = np.moveaxis(images, -1, 1) if self.channels_last else images
        if images.shape[1:] != self.shape or (images.dtype.kind in "ui") != self.is_integer:
            raise VitscopeError(
                f"The images are of different kinds: {images.dtype} {images.shape[1:]} after "
                f"{self.shape}: give all of one shape and type."
            )
        low, high = float(images.min()), float(images.max())
        if not np.isfinite([low, high]).all():
            raise VitscopeError("The images have values that are not finite.")
        most = 255 if self.is_integer else self.scale
        if not self.is_normalized and not 0 <= low <= high <= most:
            raise VitscopeError(
                f"The images have values from {low:g} to {high:g}, allowed with mean and std: from "
                f"0 to {most:g}: leave mean and std out if they are normalized already."
            )
        if self.is_integer:
            return np.ascontiguousarray(images, np.uint8)
        scaled = images / np.float32(self.scale) if self.scale != 1 else images
        return np.ascontiguousarray(scaled, np.float32)


def _known_scaling(wanted: WantedImages) -> tuple[Any, Any] | None:
    """Return mean and std of pixels: the caller's, else the network's; None if neither is known."""
    if wanted.mean is None and wanted.std is None and "mean" in wanted.of_network:
        return wanted.of_network["mean"], wanted.of_network["std"]
    return None if wanted.mean is None or wanted.std is None else (wanted.mean, wanted.std)


def _scaling_of_scope_images(
    wanted: WantedImages, channels: int, what: str
) -> tuple[list[float], list[float], list[str]]:
    given = _known_scaling(wanted)
    if given is None:
        raise VitscopeError(
            f"Nothing says how the network takes {what}: give mean= and std=, of pixels from 0 to "
            f"1; mean=0, std=1 leaves them as they are."
        )
    notes = []
    if wanted.mean is None:
        notes.append(f"images: mean {given[0]} and std {given[1]}, as the network was trained")
    found = {}
    for name, value in zip(("mean", "std"), given, strict=True):
        values = _as_numpy(value).astype(np.float64).ravel().tolist()
        found[name] = values * channels if len(values) == 1 else values
        if len(found[name]) != channels:
            raise VitscopeError(
                f"{name} has {len(values)} numbers, allowed: {channels}, one for each channel of "
                f"the images, or a single number."
            )
        check_scaling(name, found[name])
    mean, std = found.values()
    if min(std) <= 0:
        raise VitscopeError(f"std is {std}, allowed: numbers above 0.")
    return mean, std, notes


def _spool_scope_images(
    pieces: Iterable[Piece], image_format: _ScopeImageFormat, raw: Path
) -> tuple[Array, bool]:
    labels: list[Array] = []
    exact = not image_format.is_normalized
    raw.parent.mkdir(parents=True, exist_ok=True)
    with raw.open("wb") as file:
        for images, known in pieces:
            taken = image_format.taken(images)
            exact = exact and _is_8_bit(taken)
            taken.tofile(file)
            unknown = np.full(len(taken), UNKNOWN_LABEL)
            labels.append(unknown if known is None else _checked_labels(known, len(taken)))
    return np.concatenate(labels), exact


def _is_8_bit(images: Array) -> bool:
    """Tell whether values are whole multiples of 1/255, as 8-bit pixels divided by 255 are."""
    if images.dtype == np.uint8:
        return True
    return bool((np.rint(images * 255).astype(np.float32) / np.float32(255) == images).all())


def _checked_labels(labels: Any, images: int) -> Array:
    array = _as_numpy(labels)
    if array.dtype.kind not in "iu" or array.shape != (images,):
        raise VitscopeError(
            f"The labels are {array.dtype} of the shape {array.shape}, allowed: whole numbers, "
            f"one for each of {images} images."
        )
    return array.astype(np.int64)


def _check_labels_fit_classes(labels: Any, found: Array, classes: int | None) -> Array:
    """Check labels against the network's classes; without classes, all labels become unknown."""
    numbers = _checked_labels(labels, len(found))
    known = numbers[numbers >= 0]
    if classes is None:
        return np.full(len(found), UNKNOWN_LABEL)
    if len(known) and known.max() >= classes:
        raise VitscopeError(
            f"The labels go up to {known.max()}, allowed: from 0 to {classes - 1}, since the "
            f"network has {classes} outputs."
        )
    if 0 < len(known) < len(numbers) or numbers.min() < UNKNOWN_LABEL:
        raise VitscopeError(
            f"{len(numbers) - len(known)} of {len(numbers)} labels are negative, allowed: from 0 "
            f"to {classes - 1}."
        )
    return numbers


def _write_split_of_scope_images(
    raw: Path,
    image_format: _ScopeImageFormat,
    exact: bool,
    labels: Array,
    names: list[str],
    path: Path,
) -> None:
    count = len(labels)
    dtype = np.dtype(np.uint8 if image_format.is_integer else np.float32)
    stored: Callable[[Array], Array] = _as_8_bit if exact else np.asarray

    def tensors_in_order() -> Iterator[tuple[str, int, Array]]:
        yield "index", 0, np.arange(count)
        # Read the file, since a mapped file would count as memory of this process.
        with raw.open("rb") as file:
            for first in range(0, count, IMAGES_PER_PIECE):
                wanted = min(IMAGES_PER_PIECE, count - first)
                spooled = np.fromfile(file, dtype, wanted * prod(image_format.shape))
                images = np.ascontiguousarray(stored(spooled.reshape(wanted, *image_format.shape)))
                yield "images", first, images
                yield "sums", first, row_sums(images).view(np.int64)
        yield "labels", 0, labels

    tensors = {
        "images": ("U8" if exact else "F32", (count, *image_format.shape)),
        **integer_tensors(count),
    }
    facts = {"classes": json.dumps(names), "source": "images in memory"}
    metadata = {"dataset": DATASET, "split": SPLIT, **facts}
    write_split(path, metadata, tensors, tensors_in_order(), len(names))


def _as_8_bit(images: Array) -> Array:
    if images.dtype == np.uint8:
        return images
    return np.rint(images * np.float32(255)).astype(np.uint8)
