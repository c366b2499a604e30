"""Images to measure on where what they show makes no difference."""

from pathlib import Path

import numpy as np

from vitscope.data import building
from vitscope.data.split import Split


def noise(path: Path, classes: int, images: int) -> Split:
    """Return an artefact of images of noise, with names of as many classes."""
    arrays = path.with_suffix(".npz")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (images, 32, 32, 3), np.uint8)
    np.savez(arrays, images=pixels, labels=np.arange(images) % classes)
    dataset = {
        "source": {"kind": "npz", "path": str(arrays)},
        "classes": classes,
        "image_size": 32,
        "resize": None,
        "interpolation": "bicubic",
        "splits": {"train": {"images": None, "seed": 0}},
    }
    building.build_split_file("noise", dataset, "train", path)
    return Split(path)
