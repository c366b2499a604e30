"""Watch the jobs of a run from outside: the processor time and the peak memory of each."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 0.02
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Job:
    """What a job took, by the system's own count, as of the last time that it was seen."""

    processor: float = 0.0
    memory: float = 0.0


def _seen(process: Path, root: Path, jobs: dict[str, Job]) -> None:
    """Note what a process took, if it is a job of a folder: then it has the log of one open."""
    if str(root / ".snakemake").encode() not in (process / "cmdline").read_bytes():
        return
    files = [file.readlink() for file in (process / "fd").iterdir()]
    for log in (file for file in files if file.is_relative_to(root / "logs")):
        times = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        status = (process / "status").read_text(encoding="utf-8").splitlines()
        peak = next(line for line in status if line.startswith("VmHWM:"))
        job = jobs.setdefault(str(log.relative_to(root)), Job())
        job.processor = (int(times[11]) + int(times[12])) / TICKS
        job.memory = int(peak.split()[1]) / 1024


@contextmanager
def watched_jobs(root: Path) -> Iterator[dict[str, Job]]:
    """Yield the jobs of a copy of the workflow by their logs, until the end of the block."""
    jobs: dict[str, Job] = {}
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(SECONDS):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    _seen(process, root.resolve(), jobs)
                except (OSError, StopIteration):
                    # It ended meanwhile.
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield jobs
    finally:
        stopped.set()
        thread.join()
