"""Image files, in one folder per class or all in one folder."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.data.source import required
from vitscope.data.sources._image_files import ImageFiles
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.errors import VitscopeError

SOURCE: dict[str, Any] = {
    "meaning": "image files, in a sub-folder per class, or flat and without labels",
    "keys": {"path": {"$ref": "#/$defs/source_path"}},
    "required": ("path",),
}

SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


def open_split(source: Mapping[str, Any], split: str, file: Path | None) -> ImageFiles:
    """Open the images of a folder; those that lie in it directly have no labels."""
    folder = required(file, source)
    if not folder.is_dir():
        raise VitscopeError(f"{folder} is not a folder: correct the path of the data set.")
    loose, by_class = _images_in(folder), _images_by_class(folder)
    if loose and by_class:
        raise VitscopeError(
            f"{folder} holds both images and folders of images ({', '.join(by_class)}): put "
            f"every image in the folder of its class, or all in {folder}."
        )
    if not loose and not by_class:
        raise VitscopeError(
            f"{folder} holds no images ({', '.join(sorted(SUFFIXES))}): correct the path of the "
            f"data set."
        )
    files = [(image, UNKNOWN_LABEL) for image in loose]
    for label, images in enumerate(by_class.values()):
        files += [(image, label) for image in images]
    provenance = {"source": folder.name, "source_listing_sha256": _listing(folder, files)}
    return ImageFiles(files, list(by_class), provenance)


def _listing(folder: Path, files: list[tuple[Path, int]]) -> str:
    """Digest names and sizes: reading every file would take longer than the work."""
    lines = (f"{file.relative_to(folder)} {file.stat().st_size}" for file, _ in files)
    return hashlib.sha256(os.fsencode("\n".join(lines))).hexdigest()


def _images_in(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    )


def _images_by_class(path: Path) -> dict[str, list[Path]]:
    """Return the images of each sub-folder that has any, in the order of their names."""
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    images = {folder.name: _images_in(folder) for folder in folders}
    return {name: files for name, files in images.items() if files}
