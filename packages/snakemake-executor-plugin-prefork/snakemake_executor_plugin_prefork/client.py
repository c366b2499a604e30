"""The side of Snakemake: start a process to fork from, ask it for children, wait for them."""

import json
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NUMBER = struct.Struct("!q")
# How a child ended: its status, seconds of processor time, the most memory in kB.
ENDED = struct.Struct("!qdq")
# What ends a job in the local executor when its group gets it.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ZygoteFailed(Exception):
    """There is nothing to fork from."""


class Interrupted(Exception):
    """A signal to the whole run came while modules were imported."""

    def __init__(self, code: int) -> None:
        self.code = code


class ChildLost(Exception):
    """How a job ended cannot be known any more."""


@dataclass(frozen=True)
class Used:
    seconds: float
    megabytes: float


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise EOFError
        found += part
    return found


class Zygote:
    """A process that has imported modules and forks; it ends with the run."""

    def __init__(self, modules: list[str], paths: list[str], environment: dict[str, str]) -> None:
        self._lock, self._failed, self._interrupted = threading.Lock(), "", 0
        self._control, theirs = socket.socketpair()
        # It sees by this folder which modules make temporary files, and may be killed meanwhile.
        with tempfile.TemporaryDirectory(prefix="prefork-") as folder:
            given = json.dumps({"modules": modules, "paths": paths, "folder": folder})
            self._start(theirs, given, environment)

    def _start(self, theirs: socket.socket, given: str, environment: dict[str, str]) -> None:
        """Start it, and wait until it has imported or has said why it cannot."""
        script = str(Path(__file__).with_name("zygote.py"))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, script, str(theirs.fileno()), given],
                pass_fds=[theirs.fileno()],
                env=environment,
            )
        try:
            (size,) = NUMBER.unpack(_read(self._control, NUMBER.size))
            self._failed = _read(self._control, size).decode()
        except (EOFError, OSError):
            code = self._process.wait()
            if -code in ENDING:
                self._interrupted = code
            self._failed = f"the process to fork from ended while it imported ({code})"

    def fork(self) -> "Child | None":
        """Return a new child, which waits to be told its script; None if there are too many."""
        if self._interrupted:
            raise Interrupted(self._interrupted)
        if self._failed:
            raise ZygoteFailed(self._failed)
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._lock:
                socket.send_fds(self._control, [b"f"], [theirs.fileno()])
            message, fds, _, _ = socket.recv_fds(ours, NUMBER.size, 1)
            if not message:
                raise EOFError
        except (EOFError, OSError) as error:
            ours.close()
            raise ZygoteFailed("the process to fork from was killed") from error
        if not fds:
            ours.close()
            return None
        return Child(NUMBER.unpack(message)[0], fds[0], ours)

    def close(self) -> None:
        self._control.close()
        self._process.wait()


class Child:
    def __init__(self, pid: int, pidfd: int, connection: socket.socket) -> None:
        self.pid, self._pidfd, self._connection = pid, pidfd, connection

    def run(self, request: dict[str, Any]) -> tuple[int, Used]:
        """Run a script; return its exit code, or minus the signal that ended it, and what it used."""
        umask = next(
            line.split()[1]
            for line in Path("/proc/self/status").read_text().splitlines()
            if line.startswith("Umask:")
        )
        message = pickle.dumps(request | {"umask": int(umask, 8)})
        try:
            # A child that was killed while it waited has an end, too.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._connection.sendall(NUMBER.pack(len(message)) + message)
            status, seconds, kilobytes = ENDED.unpack(_read(self._connection, ENDED.size))
            return os.waitstatus_to_exitcode(status), Used(seconds, kilobytes / 1024)
        except (EOFError, OSError) as error:
            # It may still write: no other job may start for its files before it has ended.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            select.select([self._pidfd], [], [])
            raise ChildLost("the process that this job was forked from was killed") from error
        finally:
            os.close(self._pidfd)
            self._connection.close()
