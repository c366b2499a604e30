import gzip
import io
import multiprocessing
import os
import struct
import tarfile
import zipfile
import zlib
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from tests.helpers.archives import repacked
from tests.helpers.refusals import refusal
from tests.helpers.sources import open_path, read_all
from tests.helpers.tiers import some_of
from tests.security.bombs import BOMBS, chunk, in_memory, png
from tests.security.contained import check_sentence, refusal_of
from vitscope.networks.checkpoints.foreign import read_foreign

FOLDER = "cifar-100-binary"
# Bombs that take seconds to write.
LARGE = {"labels without end in a pickle", "a footer that lies", "a cell that is repeated"}
LARGE |= {"labels that expand"}
GIGABYTE = 1 << 30


@cache
def zeros(size: int) -> bytes:
    """Return compressed zeros, a thousandth of their size: the same piece again and again."""
    return gzip.compress(bytes(1 << 24)) * (size >> 24)


def refusal_of_archive(path: Path) -> str:
    return refusal_of(lambda: open_path("cifar100", path))


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_header_that_says_it_goes_on_for_gigabytes(tmp_path: Path, kind: bytes) -> None:
    path, size = tmp_path / "a.tar.gz", 2 * GIGABYTE
    path.write_bytes(gzip.compress(header("x", kind, size - 1024)) + zeros(size))
    assert path.stat().st_size < size // 500
    assert "as no official one does" in refusal_of_archive(path)


def test_many_members_that_are_each_small_enough(tmp_path: Path) -> None:
    size = 150_000_000 // 512 * 512
    path = tmp_path / "a.tar.gz"
    member = gzip.compress(bytes(size))
    headers = (gzip.compress(header(f"{FOLDER}/{name}", size=size)) for name in "abcd")
    path.write_bytes(b"".join(each + member for each in headers))
    assert "holds more than 400000000 bytes" in refusal_of_archive(path)


def test_a_member_of_negative_size_ends(tmp_path: Path) -> None:
    block = bytearray(header(f"{FOLDER}/test.bin"))
    block[124:136] = b"\xff" * 4 + (-512).to_bytes(8, "big", signed=True)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    path = tmp_path / "a.tar"
    path.write_bytes(bytes(block) + bytes(10240))
    refusal_of_archive(path)


OUTSIDE = {
    "symbolic link": (f"{FOLDER}/a", tarfile.SYMTYPE),
    "hard link": (f"{FOLDER}/a", tarfile.LNKTYPE),
    "pipe": (f"{FOLDER}/a", tarfile.FIFOTYPE),
    "absolute": ("/tmp/a", tarfile.REGTYPE),
    "above, further in": (f"{FOLDER}/../../a", tarfile.REGTYPE),
    "a name of controls": ("/\x1b[31m\n", tarfile.REGTYPE),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_could_reach_out_of_the_archive(tmp_path: Path, name: str) -> None:
    member, kind = OUTSIDE[name]
    info = tarfile.TarInfo(member)
    info.type, info.linkname = kind, "/etc/passwd"
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(info)
    assert "is a link, has holes or leaves the folder" in refusal_of_archive(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.tar.gz"]


def npy(shape: str, kind: str = "|u1") -> bytes:
    """Return the header of an array, of a shape as it is written."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def zipped(path: Path, method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


SIXTEEN = npy("(16, 8, 8, 3)") + bytes(16 * 8 * 8 * 3)
WRONG = {
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


@pytest.mark.parametrize("name", WRONG)
def test_arrays_that_lie_about_themselves(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "a.npz", **WRONG[name])
    refusal_of(lambda: read_all(open_path("npz", path)))
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_expand_without_end_are_not_those_of_numpy(
    tmp_path: Path, method: int
) -> None:
    path = zipped(tmp_path / "a.npz", method, images=SIXTEEN + bytes(GIGABYTE // 8))
    assert "would expand to" in refusal_of(lambda: open_path("npz", path))


def test_a_member_that_says_it_expands_more_than_it_can(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.npz", images=SIXTEEN)
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02")
    data[start + 24 : start + 28] = struct.pack("<I", 0xF0000000)
    path.write_bytes(data)
    assert "would expand to 4026531840 bytes" in refusal_of(lambda: open_path("npz", path))


def test_weights_that_expand(tmp_path: Path) -> None:
    stored = in_memory(partial(torch.save, {"weight": torch.zeros(1 << 26)}))
    path = repacked(tmp_path / "a.pth", stored, method=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 20
    assert "which no weights do: do not use it" in refusal_of(lambda: read_foreign(path, "ViT"))


@pytest.mark.parametrize("side", [20_000, 2**31 - 1])
def test_pictures_that_are_too_large(tmp_path: Path, side: int) -> None:
    zeros = bytes(min(side * (1 + 3 * side), 1 << 26))
    (tmp_path / "a.png").write_bytes(png(side, side, 8, zeros))
    sentence = refusal_of(lambda: read_all(open_path("folder", tmp_path)))
    assert "is not a readable image: repair or remove it" in sentence


def test_a_picture_with_a_text_that_expands(tmp_path: Path) -> None:
    data = b"Comment\0\0" + zlib.compress(bytes(GIGABYTE // 4), 9)
    picture = png(8, 8, 8, bytes(8 * 25))
    (tmp_path / "a.png").write_bytes(picture[:33] + chunk(b"zTXt", data) + picture[33:])
    refusal_of(lambda: read_all(open_path("folder", tmp_path)))


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


def test_pillow_would_run_ghostscript_and_is_not_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary, programs, pictures = tmp_path / "ran", tmp_path / "bin", tmp_path / "pictures"
    programs.mkdir()
    pictures.mkdir()
    (programs / "gs").write_text(f"#!/bin/sh\ntouch {canary}\n")
    (programs / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (pictures / "a.jpg").write_bytes(POSTSCRIPT)
    check_sentence(refusal(lambda: read_all(open_path("folder", pictures))))
    cells = table(tmp_path / "a.parquet", image=[{"bytes": POSTSCRIPT}], label=[0])
    assert "is not a readable image" in refusal(read_all, open_path("parquet", cells))
    assert not canary.exists()
    # The danger is real: Pillow runs it where all formats are allowed.
    with Image.open(io.BytesIO(POSTSCRIPT)) as image, pytest.raises(Exception):  # noqa: B017, PT011
        image.load()
    assert canary.exists()


def test_a_folder_is_read_and_not_written_whatever_its_names_are(tmp_path: Path) -> None:
    places = [b"plain", b"with space", b"$(touch ran)", b"new\nline", b"\xff\xfe", b"-rf", b"{x}"]
    for name in places:
        folder = tmp_path / os.fsdecode(name)
        folder.mkdir()
        Image.new("RGB", (8, 8)).save(folder / "a.png")
    os.mkfifo(tmp_path / "plain" / "pipe.png")
    (tmp_path / "plain" / "loop.png").symlink_to(tmp_path / "plain" / "loop.png")
    source = open_path("folder", tmp_path)
    read_all(source)
    assert len(source) == len(places)
    assert sorted(map(os.fsencode, (file.name for file in tmp_path.iterdir()))) == sorted(places)


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path, compression="zstd", use_dictionary=False)
    return path


def test_encoded_images_that_expand(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", image=[{"bytes": bytes(1 << 25)}], label=[0])
    assert path.stat().st_size < 1 << 16
    assert "which no encoded images do" in refusal_of(lambda: open_path("parquet", path))


def test_columns_without_end_are_not_listed(tmp_path: Path) -> None:
    path = table(tmp_path / "a.parquet", **{f"{n}" * 50: [0] for n in range(1000)})
    refusal_of(lambda: open_path("parquet", path))


@pytest.mark.parametrize("name", some_of(BOMBS, *BOMBS.keys() - LARGE))
def test_what_holds_more_than_it_says(tmp_path: Path, name: str) -> None:
    bomb, path = BOMBS[name], tmp_path / "a"
    # Elsewhere: some take memory to write, too.
    writing = multiprocessing.get_context("fork").Process(target=bomb.write, args=[path])
    writing.start()
    writing.join()
    refusal_of(lambda: bomb.read(path))
