import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from tests.helpers.archives import repacked, tar_of
from tests.helpers.checkpoints import VIT
from tests.helpers.sources import open_path, read_all
from vitscope.networks.checkpoints.conversion import convert
from vitscope.networks.checkpoints.foreign import read_foreign

MEMBER = 190_000_000


def in_memory(save: Callable[[io.BytesIO], object]) -> bytes:
    """Return what a function writes to its file."""
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a part of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, bits: int, rows: bytes) -> bytes:
    """Return a picture in colour that says how large it is; each row begins with its filter, 0."""
    size = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(rows, 9))
    return b"\x89PNG\r\n\x1a\n" + size + pixels + chunk(b"IEND", b"")


def sparse(names: list[str]) -> bytes:
    """Return an archive of members that are one hole each, as old versions of GNU tar have them."""
    blocks = []
    for name in names:
        block = bytearray(512)
        block[: len(name)] = name.encode()
        block[100:108], block[108:116], block[116:124] = [b"0000644\0"] * 3
        block[124:136], block[136:148] = b"%011o\0" % 0, b"%011o\0" % 0
        block[156:157], block[257:265] = b"S", b"ustar  \0"
        # A part of no bytes at the end, and the size with all holes.
        block[386:398], block[398:410] = b"%011o\0" % MEMBER, b"%011o\0" % 0
        block[483:495] = b"%011o\0" % MEMBER
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        blocks.append(bytes(block))
    return b"".join(blocks) + bytes(1024)


def sparse_stimuli(path: Path) -> None:
    folder = "a/stimuli/style-transfer-preprocessed-512"
    names = [f"{folder}/cat/cat{number}-dog1.png" for number in range(20)]
    path.write_bytes(gzip.compress(sparse(names)))


def sparse_cifar(path: Path) -> None:
    names = ["batches.meta.txt", *(f"data_batch_{number}.bin" for number in range(1, 6))]
    path.write_bytes(gzip.compress(sparse([f"cifar-10-batches-bin/{name}" for name in names])))


def many_labels(path: Path) -> None:
    """A pickle of a hundred million labels, of two bytes each, that compress to nothing."""
    labels = b"]" + (b"(" + b"K\x01" * 100_000 + b"e") * 900
    batch = b"\x80\x03}(C\x04data]C\x0bfine_labels" + labels + b"u."
    names = b"\x80\x03}C\x10fine_label_names]s."
    path.write_bytes(tar_of("cifar-100-python", {"meta": names, "test": batch}, "w:gz"))


def strides(path: Path, rows: int = 300_000_000) -> None:
    """A tensor of one number, whose stride of zero makes it as large as a network."""
    torch.save({"cls_token": torch.zeros(1).expand(rows, 1)}, path)


def unlisted_zip(path: Path, size: int = 1_000_000) -> None:
    """A zip whose members are of a version that Python does not list, and torch reads."""
    stored = in_memory(partial(torch.save, {"weight": torch.zeros(size)}))
    repacked(path, stored, method=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    place = data.find(b"PK\x01\x02")
    while place >= 0:
        data[place + 6 : place + 8] = struct.pack("<H", 99)
        place = data.find(b"PK\x01\x02", place + 4)
    path.write_bytes(data)


def many_names(path: Path, count: int = 200_000) -> None:
    """A safetensors file of tensors without values."""
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    text = json.dumps({f"blocks.{number}.weight": empty for number in range(count)}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def many_pickled_names(path: Path, count: int = 60_000) -> None:
    tensor = torch.zeros(1)
    torch.save({f"blocks.{number}.weight": tensor for number in range(count)}, path)


def lying_parquet(path: Path, size: int = 600 << 20) -> None:
    """A cell of one image; the footer says that all that is in the file is one byte."""
    table = pa.table({"image": [{"bytes": bytes(size)}], "label": [0]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    group, data = pq.ParquetFile(path).metadata.row_group(0), path.read_bytes()
    sizes = [group.total_byte_size, *map(size_of, map(group.column, range(2)))]
    for said in sizes:
        old, least = varint(2 * said), varint(2)
        longer = bytes([least[0] | 0x80]) + b"\x80" * (len(old) - 2) + b"\0"
        # Sizes in the footer, which is the end of the file.
        before, footer = data[: -(len(data) // 2)], data[-(len(data) // 2) :]
        data = before + footer.replace(old, longer) if len(old) > 2 else data
    path.write_bytes(data)


def size_of(column: pq.ColumnChunkMetaData) -> int:
    return int(column.total_uncompressed_size)


def varint(value: int) -> bytes:
    found = []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def repeated_cell(path: Path, size: int = 50 << 20) -> None:
    """One large image, which a dictionary repeats in every row."""
    rows = pa.array([{"bytes": bytes(size)}]).take(pa.array([0] * 30))
    padding = [np.random.default_rng(0).bytes(size // 50), *[b""] * 29]
    table = pa.table({"image": rows, "label": [0] * 30, "padding": padding})
    pq.write_table(table, path, compression="zstd", use_dictionary=["image.bytes"])


def lying_npz(path: Path, count: int = 100_000_000) -> None:
    """A header that says how many images there are, and none of them."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({count}, 1, 1)}}".encode()
    header = header.ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
        archive.writestr("images.npy", data)


def labels_npz(path: Path, count: int = 100_000_000) -> None:
    """As many labels as are said, all zero, that compress to a thousandth."""
    with path.open("wb") as file:
        images, labels = np.zeros((count, 1, 1), np.uint8), np.zeros(count, np.int64)
        np.savez_compressed(file, images=images, labels=labels)


class Bomb(NamedTuple):
    write: Callable[[Path], None]
    read: Callable[[Path], object]


def convert_vit(path: Path) -> None:
    convert(path, VIT, path.with_suffix(".converted"), label="ViT", origin="")


def read_vit(path: Path) -> None:
    read_foreign(path, "ViT")


def source(kind: str, split: str = "test") -> Callable[[Path], None]:
    return lambda path: read_all(open_path(kind, path, split))


BOMBS: dict[str, Bomb] = {
    "stimuli that are holes": Bomb(sparse_stimuli, source("cue_conflict", "conflict")),
    "batches that are holes": Bomb(sparse_cifar, source("cifar10", "train")),
    "labels without end in a pickle": Bomb(many_labels, source("cifar100")),
    "tensors of one number": Bomb(strides, convert_vit),
    "a zip that Python does not list": Bomb(unlisted_zip, read_vit),
    "names without end": Bomb(many_names, read_vit),
    "names without end in a pickle": Bomb(many_pickled_names, read_vit),
    "a footer that lies": Bomb(lying_parquet, source("parquet")),
    "a cell that is repeated": Bomb(repeated_cell, source("parquet")),
    "a header that lies": Bomb(lying_npz, source("npz")),
    "labels that expand": Bomb(labels_npz, source("npz")),
}
