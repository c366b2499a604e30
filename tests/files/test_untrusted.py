import resource
from contextlib import suppress
from pathlib import Path

from tests.security.contained import refusal_of, refusal_or_none
from vitscope.errors import VitscopeError
from vitscope.files.untrusted import LEAST, bounded_memory, steps_in_bounded_memory

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
