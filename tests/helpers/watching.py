"""Watch how many bytes a folder holds while something is at work in it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 0.005


@dataclass
class Peak:
    """The most bytes that files below a folder had at once."""

    bytes: int = 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


@contextmanager
def watched(folder: Path) -> Iterator[Peak]:
    """Yield the peak of a folder, which grows until the end of the block."""
    peak, stopped = Peak(), threading.Event()

    def watch() -> None:
        while not stopped.wait(SECONDS):
            peak.bytes = max(peak.bytes, sum(map(_size, folder.rglob("*"))))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        stopped.set()
        thread.join()
