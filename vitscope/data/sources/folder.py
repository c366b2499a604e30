"""Image files, in one folder per class or all in one folder."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vitscope.data.source import MASK, Glance, ImageFiles
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.errors import VitscopeError

SOURCE: dict[str, Any] = {
    "meaning": "image files, in a sub-folder per class, or flat and without labels",
    "shared": ("path",),
    "required": ("path",),
    "glanced": True,
}

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


def open_split(source: Mapping[str, Any], split: str, file: Path) -> ImageFiles:
    """Open the images of a folder; images directly in it have no labels."""
    classes, empty = _class_folders(file)
    files = [(image, UNKNOWN_LABEL) for image in sorted(images_in(file))]
    for label, each in enumerate(classes):
        files += [(image, label) for image in sorted(images_in(each))]
    # Digest only names and sizes, since reading every file would take too long.
    lines = (f"{image.relative_to(file)} {image.stat().st_size}" for image, _ in files)
    listing = hashlib.sha256(os.fsencode("\n".join(lines))).hexdigest()
    provenance = {"source": file.name, "source_listing_sha256": listing}
    return ImageFiles(files, [each.name for each in classes], provenance, empty)


def glance(folder: Path, most: int) -> Glance:
    try:
        classes, empty = _class_folders(folder)
        images = chain.from_iterable(map(images_in, [folder, *classes]))
        count = sum(1 for _ in islice(images, most))
        return Glance([each.name for each in classes], count, empty)
    except OSError as error:
        raise VitscopeError(
            f"{folder} cannot be read ({error.strerror}, {error.filename}): make it readable."
        ) from error


def _class_folders(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the visible sub-folders with images, and the names of sub-folders without images."""
    if not folder.is_dir():
        raise VitscopeError(f"{folder} is not a folder: correct the path of the data set.")
    named = [each for each in sorted(folder.iterdir()) if not each.name.startswith(".")]
    folders = [each for each in named if each.is_dir()]
    classes = [each for each in folders if _holds_images(each)]
    loose = _holds_images(folder)
    if loose and classes:
        raise VitscopeError(
            f"{folder} holds both images and folders of images "
            f"({', '.join(each.name for each in classes)}): put every image in the folder of its "
            f"class, or all in {folder}."
        )
    if not loose and not classes:
        raise VitscopeError(
            f"{folder} holds no images ({', '.join(sorted(SUFFIXES))}): correct the path of the "
            f"data set."
        )
    return classes, [each.name for each in folders if each not in classes]


def _holds_images(folder: Path) -> bool:
    return next(images_in(folder), None) is not None


def images_in(folder: Path) -> Iterator[Path]:
    """Yield a folder's images unsorted, so that the first of many is found at once."""
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            hidden = entry.name.startswith(".") or entry.name.endswith(MASK)
            if path.suffix.lower() in SUFFIXES and not hidden and path.is_file():
                yield path
