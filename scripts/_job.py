"""Run the job of a rule: set threads, take a GPU, write the log, report failures in a sentence."""

import ctypes
import errno
import fcntl
import gc
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from io import TextIOBase
from itertools import count
from pathlib import Path
from shutil import which
from typing import NoReturn, TextIO

from vitscope.errors import VitscopeError
from vitscope.jobs.job import Job, Resources
from vitscope.networks.building.own_code import explain_network_code_failure, explain_own_code_error
from vitscope.progress import AtWork


class _Tee(TextIOBase):
    """Writes to the terminal and to the log file, and calls `heard` each time."""

    def __init__(self, *streams: TextIO, heard: Callable[[], None]) -> None:
        self._streams, self._heard = streams, heard

    def write(self, text: str) -> int:
        for stream in self._streams:
            stream.write(text)
        self._heard()
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        for stream in self._streams:
            stream.flush()


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # The values in malloc.h.


def keep_memory() -> None:
    """Tell GNU's C library to keep freed memory, for jobs that run one batch after the other.

    The passes of these are alike. New pages took 11 to 24 % of the processor time of `measure_pass`
    for three networks of `mini`, 20 % of a part of `robustness`, 6 % of `predict`.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_TRIM_THRESHOLD, -1)
        mallopt(_MMAP_MAX, 0)


def _lock_log(log: TextIO) -> None:
    """Lock the log; wait while a job of an earlier, killed run still writes the same files."""
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"vitscope: waiting for a job of a killed run, whose log is {log.name}", flush=True)
        fcntl.flock(log, fcntl.LOCK_EX)
    except OSError:
        pass  # This file system has no locks.


def _gpus_here() -> list[str]:
    """Return the GPUs that this job may use, as CUDA_VISIBLE_DEVICES names them."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None or not which("nvidia-smi"):
        return [gpu.strip() for gpu in (given or "").split(",") if gpu.strip()]
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True).stdout
    return re.findall(r"^GPU \d+: .*\(UUID: (\S+)\)$", listed, re.MULTILINE)


def _take_gpu() -> None:
    """Lock one of several GPUs that the fewest jobs have taken, until this process ends."""
    gpus = _gpus_here()
    if len(gpus) < 2:
        return
    folder = Path(tempfile.gettempdir(), f"vitscope-gpus-{os.getuid()}")
    try:
        _lock_one_of(gpus, _open_private_folder(folder))
    except OSError as error:
        # The job can do without this folder.
        why = f"{folder} cannot be used ({error.strerror})"
        print(f"vitscope: this job takes no GPU of its own, since {why}", flush=True)


def _open_private_folder(folder: Path) -> int:
    """Open a folder to which no other user can write; refuse links and other users' folders."""
    folder.mkdir(mode=0o700, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    if os.fstat(opened).st_uid != os.getuid():
        raise PermissionError(errno.EACCES, "it is another user's")
    os.fchmod(opened, 0o700)
    return opened


def _lock_one_of(gpus: list[str], folder: int) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    for turn in count():
        for gpu in gpus:
            lock = os.open(f"{gpu}.{turn}", flags, 0o600, dir_fd=folder)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            os.environ["CUDA_VISIBLE_DEVICES"] = gpu
            return


def _memory_error_types() -> tuple[type[BaseException], ...]:
    torch = sys.modules.get("torch")
    return (MemoryError, torch.OutOfMemoryError) if torch else (MemoryError,)


def _exit_with_sentence(log: TextIO, sentence: str | None) -> NoReturn:
    """Write a sentence as the last line of the log, which the run repeats at its end, and exit."""
    sentence = sentence or f"nothing is known of this failure but {log.name}."
    # VitscopeError puts any text on one line.
    print(f"vitscope: {VitscopeError(sentence)}", file=log)
    sys.exit(1)


def _label_of(wildcards) -> str:
    subject = next(filter(None, map(wildcards.get, ("model", "dataset", "video"))), "")
    snapshot = wildcards.get("snapshot")
    return f"{subject}, snapshot {snapshot}" if snapshot else subject


def _run_for_rule(job: Job, snakemake, label: str, work: AtWork) -> None:
    given = dict(snakemake.params.items())
    # A rule may add values that only it knows, such as paths.
    values = given.pop("values") | {key: given[key] for key in given.keys() - {"code"}}
    resources = Resources(
        threads=snakemake.threads,
        label=label,
        count=work.count,
        lock=snakemake.resources.get("lock_file", ""),
    )
    inputs, outputs = dict(snakemake.input.items()), dict(snakemake.output.items())
    # Set these first: libraries read them when the job imports them.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(snakemake.threads))
    if job.batches:
        keep_memory()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(snakemake.threads)
    # Do this before anything asks CUDA, which checks only once which devices it may see.
    if values.get("device", "cpu") != "cpu":
        _take_gpu()
    job.run(inputs, outputs, values, resources)


def run_job(job: Job, snakemake) -> None:
    """Run a job, copy what it prints to its log, and report a failure in one sentence."""
    # Let Ctrl-C end the job without a traceback; the run itself reports it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    label = _label_of(snakemake.wildcards)
    what = snakemake.wildcards.get("measure") or snakemake.rule.replace("_", " ")
    work = AtWork(f"{label}, {what}" if label else what, print)
    names, values = dict(snakemake.wildcards.items()), snakemake.params["values"]
    batches = job.batch_setting(names, values)
    path = Path(snakemake.log[0])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = path.open("a", buffering=1, encoding="utf-8")
    except OSError as error:
        why = f"vitscope: the log {path} cannot be written ({error.strerror}): make room for it."
        print(why, file=sys.stderr)
        sys.exit(1)
    with opened as log:
        _lock_log(log)
        log.truncate(0)
        try:
            with redirect_stdout(_Tee(sys.stdout, log, heard=work.heard)), work.watch():
                _run_for_rule(job, snakemake, label, work)
        except VitscopeError as error:
            _exit_with_sentence(log, str(error))
        except _memory_error_types():
            less = f"lower {batches} in the study" if batches else "run fewer jobs at a time"
            _exit_with_sentence(log, f"not enough memory: {less}.")
        except Exception as error:
            traceback.print_exc(file=log)
            _exit_with_sentence(
                log, explain_network_code_failure(error) or explain_own_code_error(error)
            )
        finally:
            # Do not let Python search all objects for garbage once more before it ends: 1.7 of the
            # 7.7 s of a process that imports torch, timm and pandas.
            gc.freeze()
