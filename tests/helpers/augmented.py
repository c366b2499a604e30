"""Augmented images as a job reads them, of arrays that a test makes up."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vitscope.files.tensors import TensorWriter
from vitscope.training.batches import AugmentedImages

Array = npt.NDArray[Any]


def augmented(path: Path, images: Array, targets: Array, clean: bool = False) -> AugmentedImages:
    """Write images (N, 3, H, W) and their soft targets (N, classes)."""
    tensors = {"images": images.astype(np.float32), "targets": targets.astype(np.float32)}
    shapes = {name: ("F32", values.shape) for name, values in tensors.items()}
    with TensorWriter(path, shapes, {"data_sha256": "ab", "clean": str(clean)}) as writer:
        for name, values in tensors.items():
            writer.write(name, 0, values)
    return AugmentedImages(path)
