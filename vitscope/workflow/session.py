"""One run at a time in a folder, also after a run that was killed."""

import fcntl
import os
import re
import subprocess
from pathlib import Path
from shutil import which

from vitscope.errors import VitscopeError

# The name of a job of Slurm: what the profile puts before the name of the run, and that name.
_JOB_NAME = re.compile(r"(\w+_)?\w{8}(-\w{4}){3}-\w{12}")


def claim_folder(records: Path) -> int:
    """Hold a folder for this process, or stop if another run holds it.

    The lock belongs to the process: unlike a file that is there or not, it does not outlive a run
    that is killed. Return what keeps it open.
    """
    lock = os.open(records / "run.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise VitscopeError("another run is at work in this folder: wait for it to end.") from None
    except OSError as error:
        raise VitscopeError(
            f"this file system has no locks ({error}): mount it with flock."
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
