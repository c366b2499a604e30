import gzip
import io
import resource
import tarfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.security.contained import refusal_of, refusal_or_none
from vitscope.errors import VitscopeError
from vitscope.files.untrusted import LEAST, bounded_memory, disguise_of, steps_in_bounded_memory

MEBIBYTE = 1 << 20


def file_of(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def take(path: Path, size: int) -> None:
    with bounded_memory(path):
        # Memory that is not written to is not there.
        bytearray(size)


def test_a_small_file_takes_no_more_than_any_may(tmp_path: Path) -> None:
    path = file_of(tmp_path / "a", 1000)
    assert refusal_or_none(lambda: take(path, LEAST - 64 * MEBIBYTE)) is None
    sentence = refusal_of(lambda: take(path, LEAST + 64 * MEBIBYTE))
    assert sentence.startswith(f"{path} takes more memory to read than any file of 1000 bytes")
    # A large file may take more.
    path = file_of(tmp_path / "b", 64 * MEBIBYTE)
    assert refusal_or_none(lambda: take(path, LEAST + 64 * MEBIBYTE)) is None


def test_the_limit_ends_with_the_reading(tmp_path: Path) -> None:
    path, before = file_of(tmp_path / "a", 1000), resource.getrlimit(resource.RLIMIT_DATA)
    steps = steps_in_bounded_memory(path, iter([1, 2]))
    for _ in steps:
        assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with suppress(VitscopeError), bounded_memory(path):
        assert resource.getrlimit(resource.RLIMIT_DATA) != before
        raise MemoryError
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


PAGE = "<html>Sign in, please: Grüße</html>"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_text_in_utf_16_is_no_data(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(PAGE.encode(encoding) * 30)
    assert disguise_of(path) == "a text in UTF-16"


def test_a_packed_page_is_no_data_and_a_packed_archive_is(tmp_path: Path) -> None:
    path, archive = tmp_path / "a", io.BytesIO()
    path.write_bytes(gzip.compress(PAGE.encode() * 1000))
    assert disguise_of(path) == "a web page, packed by gzip,"
    with tarfile.open(fileobj=archive, mode="w:gz") as packed:
        packed.addfile(tarfile.TarInfo("cifar/<html>"), io.BytesIO(b""))
    path.write_bytes(archive.getvalue())
    assert disguise_of(path) is None
    # What says that it is packed, and is not.
    path.write_bytes(b"\x1f\x8b<html>")
    assert disguise_of(path) is None


def test_numbers_with_zeros_between_them_are_data(tmp_path: Path) -> None:
    path = tmp_path / "a"
    np.save(path.with_suffix(".npy"), np.arange(32, 127, dtype="<u2"))
    assert disguise_of(path.with_suffix(".npy")) is None
    (tmp_path / "b").write_bytes(b"")
    assert disguise_of(tmp_path / "b") is None
