"""Write down what the own lines of a script took, for those who ask where time and memory go."""

import builtins
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

# The environment names the file: a line of it is the log of a job, the seconds of its work, the
# processor time since its start, and the most memory that it had, in MiB.
WANTED = "VITSCOPE_TIMES"
STATUS = Path("/proc/self/status")


class _Imports:
    """Stand in for the `import` statement, and count the seconds that it takes."""

    def __init__(self) -> None:
        self.original = builtins.__import__
        self._depth = 0
        self.seconds = 0.0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        start = perf_counter()
        self._depth += 1
        try:
            return self.original(*arguments, **options)
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += perf_counter() - start


@contextmanager
def timed(log: str) -> Iterator[None]:
    """Time a script, if that is asked for; what it imports on the way is no work."""
    if WANTED not in os.environ:
        yield
        return
    start = perf_counter()
    builtins.__import__ = imports = _Imports()
    try:
        yield
    finally:
        work = perf_counter() - start - imports.seconds
        builtins.__import__ = imports.original
        with Path(os.environ[WANTED]).open("a", encoding="utf-8") as file:
            file.write(json.dumps([log, work, process_time(), _peak_memory()]) + "\n")


def _peak_memory() -> float | None:
    """Return the most memory of this process, in MiB, where the system tells it."""
    if not STATUS.exists():
        return None
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
