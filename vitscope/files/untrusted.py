"""Guard against files from others: detect what is no data, and limit the memory for reading."""

import re
import resource
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from vitscope.errors import VitscopeError

DISGUISES = {
    b"<": "a web page",
    b"{": "an answer in JSON",
    b"[": "an answer in JSON",
    b"version https://git-lfs.github.com/spec/": "a Git LFS pointer",
}
# Bytes that no text has, but every file of numbers has near its beginning.
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1f]")
# The mark of UTF-16, or letters of ASCII in it; NumPy and torch begin no file so.
_UTF_16 = re.compile(rb"\xff\xfe|\xfe\xff|([\t\n\r -~]\0){8}|(\0[\t\n\r -~]){8}")
_GZIP = b"\x1f\x8b"
# The first bytes of PNM pictures whose values are written as text.
_PICTURE = re.compile(rb"P[1-3]\s")
# The memory in bytes that reading a file may take, whatever the size of the file.
LEAST = 512 << 20
# The memory that reading may take in addition, as a multiple of the size of the file.
TIMES = 4
T = TypeVar("T")


def disguise_of(path: Path) -> str | None:
    """Return what a file is instead of data, as its first bytes show; None if it may be data."""
    with path.open("rb") as file:
        start = file.read(512)
    if start.startswith(_GZIP):
        inside = _disguise_of_start(_unpacked(start))
        return f"{inside}, packed by gzip," if inside else None
    return _disguise_of_start(start)


def _unpacked(start: bytes) -> bytes:
    """Return the first 512 bytes at most that the start of a gzip file holds."""
    with suppress(zlib.error):
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(start, 512)
    return b""


def _disguise_of_start(start: bytes) -> str | None:
    if _UTF_16.match(start):
        return "a text in UTF-16"
    if _NO_TEXT.search(start):
        return None
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    named = (name for mark, name in DISGUISES.items() if text.startswith(mark))
    return next(named, None if not text or _PICTURE.match(text) else "a text")


@contextmanager
def bounded_memory(path: Path) -> Iterator[None]:
    """Refuse a file if reading it takes more memory than a file of its size can need.

    The limit applies to the writable memory of the whole process, and is removed afterwards. It is
    not set for folders, whose size says nothing, nor on systems other than Linux.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        most = pages * resource.getpagesize() + LEAST + TIMES * path.stat().st_size
    except OSError:
        most = 0
    if not path.is_file() or most == 0 or 0 <= before[0] < most:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    except MemoryError as error:
        raise VitscopeError(
            f"{path} takes more memory to read than any file of {path.stat().st_size} bytes "
            f"should: do not use it, and get it again from where it was published."
        ) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def steps_in_bounded_memory(path: Path, steps: Iterable[T]) -> Iterator[T]:
    """Yield the `steps` of reading a file, with a memory limit for each step."""
    iterator, end = iter(steps), object()
    while True:
        with bounded_memory(path):
            step = next(iterator, end)
        if step is end:
            return
        yield step  # type: ignore[misc]
