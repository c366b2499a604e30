"""One run at a time in a folder, also after a run that was killed; and how a run ends."""

import atexit
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from shutil import which
from threading import Thread

import psutil

from vitscope.errors import VitscopeError

# How every sentence begins that tells of a failure, and where Snakemake puts scripts to run them.
TOLD = "vitscope: "
SCRIPTS = "/.snakemake/scripts/"
_AT_EXIT = set[str]()
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# The name of a job of Slurm: what the profile puts before the name of the run, and that name.
_JOB_NAME = re.compile(r"(\w+_)?\w{8}(-\w{4}){3}-\w{12}")


def claim_folder(records: Path) -> int:
    """Hold a folder for this process, or stop if another run holds it.

    The lock belongs to the process: unlike a file that is there or not, it does not outlive a run
    that is killed. What the file says is for those who are refused. Return what keeps it open.
    """
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    mine = f"process {os.getpid()} on {socket.gethostname()}, since {now}".encode()
    path = records / "run.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, mine, 0)
    except BlockingIOError:
        holder = os.pread(lock, 200, 0).decode(errors="replace") or "which has just begun"
        raise VitscopeError(
            f"another run is at work in this folder ({holder}): wait for it to end, or end it."
        ) from None
    except OSError as error:
        raise VitscopeError(
            f"{path} cannot be written and locked ({error.strerror}): make room, let this user "
            f"write to it, and mount its file system with flock."
        ) from error
    return lock


def refuse_jobs_left_in_slurm(records: Path) -> None:
    """Stop if a run that was killed left jobs on a cluster, which write into this folder."""
    left = _jobs_left(records)
    if left:
        raise VitscopeError(
            f"a run that was killed left {len(left)} jobs in Slurm that write into this "
            f"folder: wait for them to end, or end them by: scancel {' '.join(left)}"
        )


def _jobs_left(records: Path) -> list[str]:
    """Return the jobs of Slurm that were started from this folder."""
    if not (records / "slurm_logs").is_dir() or not which("squeue"):
        return []
    asked = ["squeue", "--me", "--noheader", "--format=%A %j %Z"]
    answer = subprocess.run(asked, capture_output=True, text=True)
    if answer.returncode:
        reason = answer.stderr.strip()
        raise VitscopeError(f"Slurm does not say whether jobs are left: {reason}")
    jobs = [line.split(maxsplit=2) for line in answer.stdout.splitlines()]
    here = os.path.realpath(".")
    ours = {
        job for job, name, at in jobs if _JOB_NAME.fullmatch(name) and os.path.realpath(at) == here
    }
    return sorted(ours, key=int)


def refuse_places_without_access(files: list[Path]) -> None:
    """Stop before the first job if one is to write to a folder where it may not."""
    folders = {file.parent for file in files}
    there = {next(f for f in (folder, *folder.parents) if f.exists()) for folder in folders}
    for folder in sorted(there):
        if not os.access(folder, os.W_OK):
            raise VitscopeError(f"{folder} may not be written: make it writable.")


def end_when_told() -> None:
    """End this run and its jobs at once when it is told to: by Ctrl-C, SIGTERM, a closed terminal.

    Snakemake would wait for jobs, of which one that was just starting has not got the signal; and
    its own handler takes a lock that the code which it interrupts may hold. What `nohup` ignores
    stays ignored.
    """
    for each in _ENDING:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _end)


def _end(number: int, _: object) -> None:
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    Thread(target=_end_jobs, daemon=True).start()
    told = signal.Signals(number).name
    print_at_exit(
        [f"{TOLD}the run was told to end ({told}): the same command goes on where it was."]
    )
    # The scheduler catches this, and cancels what it has submitted to a cluster.
    sys.exit(1)


def _end_jobs(patience: float = 5.0) -> None:
    """End the jobs on this machine, and those that are still started, as long as this runs."""
    begun = time.monotonic()
    while True:
        end_processes(_jobs_here(), by_force=time.monotonic() - begun > patience)
        time.sleep(0.1)


def end_processes(processes: Iterable[psutil.Process], by_force: bool) -> None:
    """Tell processes to end; one that has ended meanwhile keeps no other alive."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if by_force:
                process.kill()
            else:
                process.terminate()


def _jobs_here() -> Iterable[psutil.Process]:
    """Return the scripts that this run has at work; what asks a cluster is none of these."""
    for process in psutil.Process().children(recursive=True):
        try:
            command = process.cmdline()
        except psutil.Error:
            continue
        if any(SCRIPTS in part for part in command):
            yield process


def print_at_exit(sentences: list[str]) -> None:
    """Print sentences when this process has said everything else, each once."""
    new = [sentence for sentence in sentences if sentence not in _AT_EXIT]
    _AT_EXIT.update(new)
    for sentence in reversed(new):
        atexit.register(print, sentence, file=sys.stderr, flush=True)


def explain_failures(logs: Iterable[Path]) -> list[str]:
    """Return why jobs failed, by their logs: a sentence each, or the whole log without one."""
    found = []
    for log in logs:
        text = log.read_text(encoding="utf-8", errors="replace").strip() if log.is_file() else ""
        last = text.rpartition("\n")[2]
        if last.startswith(TOLD):
            found.append(last)
        elif "Traceback (most recent call last):" in text:
            found.append(f"{text}\n{TOLD}nothing is known of this failure but {log}.")
    return list(dict.fromkeys(found))
