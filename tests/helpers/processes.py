import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def output_of(*command: object, **options: Any) -> str:
    """Run a command; return what it printed."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    done = subprocess.run(list(map(str, command)), text=True, check=False, **options)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let this process write no file that is larger, as where a disk is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)


def python(code: str, *arguments: object, **options: Any) -> str:
    """Run code in a fresh interpreter; return what it printed."""
    return output_of(sys.executable, "-c", code, *arguments, **options)
