"""Web pages, answers and pointers that servers and clones give in place of a file."""

import re
from pathlib import Path

DISGUISES = {
    b"<": "a web page",
    b"{": "an answer in JSON",
    b"[": "an answer in JSON",
    b"version https://git-lfs.github.com/spec/": "a Git LFS pointer",
}
# What no text has, and the first bytes of every file of numbers.
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1f]")
# Pictures in digits.
_PICTURE = re.compile(rb"P[1-3]\s")


def disguise_of(path: Path) -> str | None:
    """Return what a file is instead of data, by how it begins; None if it may be data."""
    with path.open("rb") as file:
        start = file.read(512)
    if _NO_TEXT.search(start):
        return None
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    named = (name for mark, name in DISGUISES.items() if text.startswith(mark))
    return next(named, None if not text or _PICTURE.match(text) else "a text")
