from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import nn

from vitscope.data.building import build_split_file, open_split_file
from vitscope.data.split import Split
from vitscope.measures.given import OnModel

Source = dict[str, Any]

CENTER, SPREAD = [0.5, 0.5, 0.5], [0.25, 0.25, 0.25]
GENERATED = {"kind": "shapes32", "seed": 0}


def built(
    path: Path,
    source: Source,
    split: str = "test",
    *,
    images: int | None = None,
    seed: int | None = None,
    classes: int | None = 10,
    **others: Any,
) -> Split:
    """Build a split of the data set `mine`, of images of 32 pixels."""
    dataset = {
        "source": source,
        "classes": classes,
        "image_size": 32,
        "resize": None,
        "interpolation": "bicubic",
        "splits": {split: {"images": images, "seed": seed}},
        **others,
    }
    build_split_file("mine", dataset, split, path)
    return open_split_file(path)


# Two classes of shapes, each under the name of the other.
SWAPPED = {"meshed triangle": "rippled square", "rippled square": "meshed triangle"}


def write_folder(split: Split, folder: Path, renamed: dict[str, str] | None = None) -> Source:
    """Write images to a folder for each class, which may get another name; return the source."""
    for row, label in enumerate(split.labels.tolist()):
        name = split.classes[label]
        file = folder / (renamed or {}).get(name, name) / f"{row}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(split.images([row])[0].transpose(1, 2, 0)).save(file)
    return {"kind": "folder", "path": str(folder)}


def arrays(path: Path, images: npt.ArrayLike, labels: npt.ArrayLike | None = None) -> Source:
    """Write images (N, H, W, 3) and their labels to an archive of NumPy; return the source."""
    np.savez(path, images=images, **({} if labels is None else {"labels": labels}))
    return {"kind": "npz", "path": str(path)}


def shapes(path: Path, images: int, split: str = "test") -> Split:
    return built(path, GENERATED, split, images=images)


def splits_of_shapes(folder: Path, train: int, test: int) -> tuple[Split, Split]:
    """Build splits of so many drawn shapes, to train and to test on, chosen by a seed."""
    drawn = built(folder / "train", GENERATED, "train", images=train, seed=0)
    return drawn, built(folder / "test", GENERATED, images=test, seed=0)


def on_model(network: nn.Module, images: Split, **others: Any) -> OnModel:
    """Return what a job of a measure of the model is given; by default it has no cut points."""
    settings = {"mean": CENTER, "std": SPREAD, "classes": len(images.classes), "image_size": 32}
    defaults = {"cut_points": [], "device": torch.device("cpu"), "batch_size": 7, "blocks": None}
    return OnModel("net", network, images=images, settings=settings, **(defaults | others))
