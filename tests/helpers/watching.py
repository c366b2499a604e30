"""Watch how many bytes a folder holds while something is at work in it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def watched(folder: Path) -> Iterator[list[int]]:
    """Yield the bytes that a folder has had, of which there are more until the end of the block."""
    sizes, stopped = [0], threading.Event()

    def size(path: Path) -> int:
        try:
            return path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            return 0

    def watch() -> None:
        while not stopped.wait(0.005):
            # A folder in it may go while it is walked through.
            with suppress(FileNotFoundError):
                sizes.append(sum(map(size, folder.rglob("*"))))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sizes
    finally:
        stopped.set()
        thread.join()
