from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from PIL import Image

from vitscope.video.views import Subject

Pixels = npt.NDArray[np.uint8]


def frames(count: int = 5, size: tuple[int, int] = (24, 16)) -> list[Pixels]:
    """Return frames (height, width, 3), each of which is another."""
    chance = np.random.default_rng(0)
    smooth = chance.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    large = np.asarray(Image.fromarray(smooth).resize(size, Image.Resampling.BILINEAR))
    return [np.roll(large, (size[0] // 6 * number, number), (1, 0)) for number in range(count)]


def save_frames(path: Path, pixels: list[Pixels], durations: int | list[int] = 40) -> Path:
    first, *others = map(Image.fromarray, pixels)
    options = {"lossless": True} if path.suffix == ".webp" else {}
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, **options)
    return path


def folder_of(folder: Path, pixels: list[Pixels], name: str = "frame{}.png") -> Path:
    folder.mkdir()
    for number, each in enumerate(pixels, 1):
        Image.fromarray(each).save(folder / name.format(number))
    return folder


def cut(path: Path, share: float) -> Path:
    """Cut the end off a file, in a copy beside it."""
    data = path.read_bytes()
    shorter = path.with_name(f"cut-{path.name}")
    shorter.write_bytes(data[: round(share * len(data))])
    return shorter


def subject_of(**found: Any) -> Subject:
    """Return a network of images of 16 pixels as videos have it, without cut points."""
    taking = {"channels": 3, "image_size": 16, "resize": 16, "interpolation": "bilinear"}
    nothing = {"cut_points": [], "blocks": pd.DataFrame(), "device": torch.device("cpu")}
    return Subject(model="mine", label="mine", **nothing, **({"taking": taking} | found))


def read_back(path: Path) -> list[Pixels]:
    return [pixels for pixels, _ in read_timed(path)]


def read_timed(path: Path) -> list[tuple[Pixels, int]]:
    """Return the frames of an animated picture, and the milliseconds of each."""
    found = []
    with Image.open(path) as image:
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            pixels = np.asarray(image.convert("RGB"))
            found.append((pixels, image.info.get("duration", 0)))
    return found
