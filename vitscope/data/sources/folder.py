"""Image files: in folders, or a photograph that is always there."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vitscope.data.source import UNKNOWN_LABEL, Sample, decoded
from vitscope.errors import VitscopeError
from vitscope.files.whole import sha256_of

SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


class Pictures:
    """Image files with the numbers of their classes."""

    extra = ()

    def __init__(
        self, files: list[tuple[Path, int]], classes: list[str], provenance: dict[str, str]
    ) -> None:
        self._files, self.classes, self.provenance = files, classes, provenance

    def __len__(self) -> int:
        return len(self._files)

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        """Yield images with the number of their class."""
        for index in indices:
            file, label = self._files[index]
            yield Sample(decoded(file, str(file)), label)


class Folder(Pictures):
    """Image files in one folder per class, or all in one folder and without labels."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise VitscopeError(f"{path} is not a folder: correct the path of the data set.")
        loose, by_class = _images_in(path), _images_by_class(path)
        if loose and by_class:
            raise VitscopeError(
                f"{path} holds both images and folders of images ({', '.join(by_class)}): put "
                f"every image in the folder of its class, or all in {path}."
            )
        if not loose and not by_class:
            raise VitscopeError(
                f"{path} holds no images ({', '.join(sorted(SUFFIXES))}): correct the path of the "
                f"data set."
            )
        files = [(file, UNKNOWN_LABEL) for file in loose]
        for label, images in enumerate(by_class.values()):
            files += [(file, label) for file in images]
        # Names and sizes: to read every file of a large folder would take longer than the work.
        listing = "\n".join(f"{file.relative_to(path)} {file.stat().st_size}" for file, _ in files)
        listed = hashlib.sha256(os.fsencode(listing)).hexdigest()
        provenance = {"source": path.name, "source_listing_sha256": listed}
        super().__init__(files, list(by_class), provenance)


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


def sample_photograph() -> Pictures:
    """Open the photograph that matplotlib brings along, for a look at a model without data."""
    from matplotlib.cbook import get_sample_data

    path = Path(get_sample_data("grace_hopper.jpg", asfileobj=False))
    provenance = {"source": f"{path.name} of matplotlib", "source_sha256": sha256_of(path)}
    return Pictures([(path, UNKNOWN_LABEL)], [], provenance)
