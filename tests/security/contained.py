"""A reader at work where it can do no harm: in a process with little memory and little time."""

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from vitscope.errors import VitscopeError

MEMORY = 1 << 30
# What protects the machine from a reader that takes more.
LIMIT = 4 * MEMORY
SECONDS = 60


def refusal_of(function: Callable[[], object]) -> str:
    """Return the sentence in which a reader refuses a file; anything else is a failure."""
    outcome = refusal_or_none(function)
    assert outcome is not None, "the file was read"
    return outcome


def refusal_or_none(function: Callable[[], object]) -> str | None:
    """Return the sentence in which a reader refuses a file, or None if it reads it.

    It may take a GiB of memory more than this process has, and a minute.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_run, args=(function, sender))
    process.start()
    sender.close()
    try:
        kind, text, taken = receiver.recv()
    except EOFError:
        kind, text, taken = "died", "", 0
    process.join()
    assert taken < MEMORY, f"{taken >> 20} MiB were taken: {kind} {text}"
    assert process.exitcode == 0, f"{kind} {text} exit code {process.exitcode}"
    assert kind in {"refused", "read"}, f"{kind}: {text}"
    return check_sentence(text) if kind == "refused" else None


def check_sentence(text: str) -> str:
    """Return a message, which must be one line of readable length that ends as a sentence does."""
    assert text.isprintable()
    assert len(text) < 3000
    assert text.endswith((".", "?")), text
    return text


def _run(function: Callable[[], object], sender: Connection) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.alarm(SECONDS)
    before = _peak()
    try:
        function()
        kind, text = "read", ""
    except VitscopeError as error:
        kind, text = "refused", str(error)
    except BaseException as error:
        kind, text = type(error).__name__, str(error)[:500]
    sender.send((kind, text, _peak() - before))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
