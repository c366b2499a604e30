import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from tests.helpers.archives import repacked
from tests.helpers.checkpoints import VIT
from tests.helpers.sources import open_path, read_all
from vitscope.networks.checkpoints.conversion import convert
from vitscope.networks.checkpoints.foreign import read_foreign

FOLDER = "cifar-100-binary"
GIGABYTE = 1 << 30
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


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info.tobuf(tarfile.GNU_FORMAT)


# Members that could reach out of their archive.
OUTSIDE = {
    "symbolic link": (f"{FOLDER}/a", tarfile.SYMTYPE),
    "hard link": (f"{FOLDER}/a", tarfile.LNKTYPE),
    "pipe": (f"{FOLDER}/a", tarfile.FIFOTYPE),
    "absolute": ("/tmp/a", tarfile.REGTYPE),
    "above, further in": (f"{FOLDER}/../../a", tarfile.REGTYPE),
    "a name of controls": ("/\x1b[31m\n", tarfile.REGTYPE),
}


def outside(path: Path, name: str, kind: bytes) -> None:
    path.write_bytes(gzip.compress(header(name, kind, link="/etc/passwd") + bytes(1024)))


def endless_header(path: Path, kind: bytes, size: int = 2 * GIGABYTE) -> None:
    """A header that says it goes on for gigabytes, of zeros: the same piece again and again."""
    zeros = gzip.compress(bytes(1 << 24)) * (size >> 24)
    path.write_bytes(gzip.compress(header("x", kind, size - 1024)) + zeros)


def many_members(path: Path, size: int = 150_000_000 // 512 * 512) -> None:
    """Members of which each is small enough."""
    member = gzip.compress(bytes(size))
    headers = (gzip.compress(header(f"{FOLDER}/{name}", size=size)) for name in "abcd")
    path.write_bytes(b"".join(each + member for each in headers))


def negative_member(path: Path) -> None:
    block = bytearray(header(f"{FOLDER}/test.bin"))
    block[124:136] = b"\xff" * 4 + (-512).to_bytes(8, "big", signed=True)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    path.write_bytes(bytes(block) + bytes(10240))


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


def strides(path: Path, rows: int = 300_000_000) -> None:
    """A tensor of one number, whose stride of zero makes it as large as a network."""
    torch.save({"cls_token": torch.zeros(1).expand(rows, 1)}, path)


def expanding_weights(path: Path) -> None:
    stored = in_memory(partial(torch.save, {"weight": torch.zeros(1 << 26)}))
    repacked(path, stored, method=zipfile.ZIP_DEFLATED)


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


def table(path: Path, dictionary: Any = False, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=dictionary)
    return path


def expanding_images(path: Path) -> None:
    table(path, image=[{"bytes": bytes(1 << 25)}], label=[0])


def many_columns(path: Path) -> None:
    table(path, **{f"{number}" * 50: [0] for number in range(1000)})


def lying_parquet(path: Path, size: int = 600 << 20) -> None:
    """A cell of one image; the footer says that all that is in the file is one byte."""
    table(path, image=[{"bytes": bytes(size)}], label=[0])
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
    table(path, ["image.bytes"], image=rows, label=[0] * 30, padding=padding)


def npy(shape: str, kind: str = "|u1") -> bytes:
    """Return the header of an array, of a shape as it is written."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


SIXTEEN = npy("(16, 8, 8, 3)") + bytes(16 * 8 * 8 * 3)


def zipped(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


WRONG: dict[str, dict[str, bytes]] = {
    "an image of a terabyte": {"images": npy("(1, 1000000, 1000000)")},
    "a trillion images": {"images": npy("(1000000000000, 1, 1)")},
    "minus one image": {"images": npy("(-1, 8, 8)")},
    "a shape of no numbers": {"images": npy("('a', 8, 8)")},
    "a shape of parentheses": {"images": npy("(" * 3000 + ")" * 3000)},
    "a header that calls": {"images": npy("(__import__('os').system('touch ran'), 8, 8)")},
    "a header of another version": {"images": b"\x93NUMPY\x09\x00" + bytes(20)},
    "a type of nested fields": {"images": npy("(1, 8, 8)", "|u1" * 1000)},
    "labels of a gigabyte": {"images": SIXTEEN, "labels": npy("(134217728,)", "<i8")},
    "labels of objects": {"images": SIXTEEN, "labels": npy("(16,)", "|O") + bytes(128)},
    "labels of a million parts": {"images": SIXTEEN, "labels": npy("(16,)", "<U99999999")},
}


def foreign_method(path: Path, method: int) -> None:
    """A method that expands without end, which is none of numpy's."""
    zipped(path, method, images=SIXTEEN + bytes(GIGABYTE // 8))


def lying_member(path: Path) -> None:
    """A member that says it expands more than it can."""
    data = bytearray(zipped(path, images=SIXTEEN).read_bytes())
    start = data.index(b"PK\x01\x02")
    data[start + 24 : start + 28] = struct.pack("<I", 0xF0000000)
    path.write_bytes(data)


def lying_npz(path: Path, count: int = 100_000_000) -> None:
    """A header that says how many images there are, and none of them."""
    zipped(path, zipfile.ZIP_STORED, images=npy(f"({count}, 1, 1)"))


def labels_npz(path: Path, count: int = 100_000_000) -> None:
    """As many labels as are said, all zero, that compress to a thousandth."""
    with path.open("wb") as file:
        images, labels = np.zeros((count, 1, 1), np.uint8), np.zeros(count, np.int64)
        np.savez_compressed(file, images=images, labels=labels)


def large_picture(path: Path, side: int) -> None:
    path.mkdir()
    (path / "a.png").write_bytes(png(side, side, 8, bytes(min(side * (1 + 3 * side), 1 << 26))))


def expanding_text(path: Path) -> None:
    """A picture with a text."""
    text = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(GIGABYTE // 4), 9))
    picture = png(8, 8, 8, bytes(8 * 25))
    path.mkdir()
    (path / "a.png").write_bytes(picture[:33] + text + picture[33:])


class Bomb(NamedTuple):
    """How a file is written and read, and a part of the sentence that refuses it."""

    write: Callable[[Path], object]
    read: Callable[[Path], object]
    says: str = ""


def convert_vit(path: Path) -> None:
    convert(path, VIT, path.with_suffix(".converted"), label="ViT", origin="")


def read_vit(path: Path) -> None:
    read_foreign(path, "ViT")


def source(kind: str, split: str = "test") -> Callable[[Path], None]:
    return lambda path: read_all(open_path(kind, path, split))


HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
BOMBS: dict[str, Bomb] = {
    **{
        f"a header without end, {kind.decode()}": Bomb(
            partial(endless_header, kind=kind), source("cifar100"), "as no official one does"
        )
        for kind in HEADERS
    },
    "many members": Bomb(many_members, source("cifar100"), "holds more than 400000000 bytes"),
    "a member of negative size": Bomb(negative_member, source("cifar100")),
    **{
        name: Bomb(
            partial(outside, name=member, kind=kind),
            source("cifar100"),
            "is a link, has holes or leaves the folder",
        )
        for name, (member, kind) in OUTSIDE.items()
    },
    **{name: Bomb(partial(zipped, **said), source("npz")) for name, said in WRONG.items()},
    "bzip2 in a npz": Bomb(
        partial(foreign_method, method=zipfile.ZIP_BZIP2), source("npz"), "would expand to"
    ),
    "lzma in a npz": Bomb(
        partial(foreign_method, method=zipfile.ZIP_LZMA), source("npz"), "would expand to"
    ),
    "a member that lies": Bomb(lying_member, source("npz"), "would expand to 4026531840 bytes"),
    "weights that expand": Bomb(expanding_weights, read_vit, "which no weights do: do not use it"),
    **{
        f"a picture of {side} pixels": Bomb(
            partial(large_picture, side=side),
            source("folder"),
            "is not a readable image: repair or remove it",
        )
        for side in (20_000, 2**31 - 1)
    },
    "a text that expands in a picture": Bomb(expanding_text, source("folder")),
    "images that expand": Bomb(expanding_images, source("parquet"), "which no encoded images do"),
    "columns without end": Bomb(many_columns, source("parquet")),
    "stimuli that are holes": Bomb(sparse_stimuli, source("cue_conflict", "conflict")),
    "batches that are holes": Bomb(sparse_cifar, source("cifar10", "train")),
    "tensors of one number": Bomb(strides, convert_vit),
    "a zip that Python does not list": Bomb(unlisted_zip, read_vit),
    "names without end": Bomb(many_names, read_vit),
    "names without end in a pickle": Bomb(many_pickled_names, read_vit),
    "a footer that lies": Bomb(lying_parquet, source("parquet")),
    "a cell that is repeated": Bomb(repeated_cell, source("parquet")),
    "a header that lies": Bomb(lying_npz, source("npz")),
    "labels that expand": Bomb(labels_npz, source("npz")),
}
