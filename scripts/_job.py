"""What every script does around its own few lines: threads, the log file, and clear failures."""

import fcntl
import gc
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from io import TextIOBase
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TextIO

from vitscope import measures
from vitscope.errors import VitscopeError
from vitscope.networks.building.failing import told as network_failure

# Large libraries are made of much that stays: a tenth of the time to import them would go into
# looking for garbage among it.
gc.disable()


class _Tee(TextIOBase):
    """Write to the terminal and to the log file."""

    def __init__(self, *streams: TextIO) -> None:
        self._streams = streams

    def write(self, text: str) -> int:
        for stream in self._streams:
            stream.write(text)
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        for stream in self._streams:
            stream.flush()


def room(snakemake, part: str) -> ModuleType:
    """Import a module of the job's measure; the rule's `code` names it."""
    measure = snakemake.wildcards.measure
    further = [*Path(*measures.__path__).glob(f"*/{part}_{measure}.py")]
    name = f"{further[0].parent.name}.{further[0].stem}" if further else f"{measure}.{part}"
    return import_module(f"vitscope.measures.{name}")


def _lock(log: TextIO) -> None:
    """Wait for a job that outlived its run, which was killed: it writes the same files."""
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"vitscope: waiting for a job of a killed run, whose log is {log.name}", flush=True)
        fcntl.flock(log, fcntl.LOCK_EX)


def _memory_errors() -> tuple[type[BaseException], ...]:
    torch = sys.modules.get("torch")
    return (MemoryError, torch.OutOfMemoryError) if torch else (MemoryError,)


def _told_of_own_code(error: Exception) -> str | None:
    """Return the sentence of an error in a user's network, if the job runs one."""
    running = sys.modules.get("vitscope.networks.building.own_run")
    return running.told(error) if running else None


def _fail(log: TextIO, sentence: str | None) -> NoReturn:
    """End with a sentence in the log, which the run tells at its end, where it is seen."""
    if sentence:
        # Made one line, whatever is in it.
        print(f"vitscope: {VitscopeError(sentence)}", file=log)
    sys.exit(1)


@contextmanager
def job(snakemake, batches: str | None = None) -> Iterator[None]:
    """Run a script: print to its log too, and end an expected failure in one sentence.

    `batches` is the setting that says how many images are in memory at once.
    """
    gc.freeze()
    gc.enable()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(snakemake.threads)
    path = Path(snakemake.log[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", buffering=1, encoding="utf-8") as log:
        _lock(log)
        log.truncate(0)
        try:
            with redirect_stdout(_Tee(sys.stdout, log)):
                yield
        except VitscopeError as error:
            _fail(log, str(error))
        except _memory_errors():
            less = f"lower {batches} in the study" if batches else "run fewer jobs at a time"
            _fail(log, f"not enough memory: {less}.")
        except Exception as error:
            traceback.print_exc(file=log)
            _fail(log, network_failure(error) or _told_of_own_code(error))
        finally:
            # Python would look through all of it once more, only to end.
            gc.freeze()
