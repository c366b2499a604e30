"""Kills and signals at every stage, want of memory, thousands of jobs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from conftest import Workflow, nothing_is_left_of

pytestmark = pytest.mark.nightly

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
STAGES = ("importing", "forked", "running", "ending")
TARGETS = ("group", "run", "zygote", "child")
CASES = [case for case in product(STAGES, TARGETS) if case != ("importing", "child")]

STAGED = """
import atexit, os, random, time
atexit.register(time.sleep, 0.2)
with open(snakemake.log[0], "w") as log:
    log.write("running ")
    log.flush()
    with open(snakemake.output[0], "w") as file:
        file.write(snakemake.wildcards.job * 3000)
        file.flush()
        time.sleep(0.2)
        file.write(str(hash(snakemake.wildcards.job)))
    log.write("ending")
"""
HEAVY = "import pathlib, time\npathlib.Path('importing').touch()\ntime.sleep(0.5)\n"


def processes_of(parent: int) -> dict[int, bytes]:
    """Return the children of a process, and their commands."""
    found = {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):
            if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return found


def zygotes_of(run: int) -> list[int]:
    return [pid for pid, command in processes_of(run).items() if b"zygote.py" in command]


def wait_for(there: Callable[[], object], run: subprocess.Popen) -> object:
    """Wait until something is there, or the run has ended."""
    while not (found := there()) and run.poll() is None:
        time.sleep(0.002)
    return found


def reached(stage: str, folder: Path, run: int) -> bool:
    if stage == "importing":
        return (folder / "importing").exists()
    if stage == "forked":
        return any(processes_of(zygote) for zygote in zygotes_of(run))
    # Not the first, so that some have ended and others have not begun.
    return sum(stage in log.read_text() for log in folder.glob("logs/*")) >= 2


def hit(target: str, number: signal.Signals, run: int) -> None:
    """Send a signal; what has ended meanwhile was not hit."""
    with suppress(ProcessLookupError, StopIteration, ValueError):
        if target == "group":
            os.killpg(run, number)
        elif target == "run":
            os.kill(run, number)
        else:
            (zygote,) = zygotes_of(run)
            os.kill(zygote if target == "zygote" else next(iter(processes_of(zygote))), number)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(("stage", "target"), CASES)
def test_after_a_signal_the_next_run_makes_the_same(
    workflow: Workflow, stage: str, target: str, number: signal.Signals
) -> None:
    """60 of them: no process is left, and no file that is not whole."""
    workflow.write(STAGED, "resources: prefork_preload='heavy'", heavy=HEAVY)
    jobs = [*"abcdef"]
    options = ("--config", f"jobs={' '.join(jobs)}")
    settings = {"PYTHONHASHSEED": "3", "TMPDIR": str(workflow.folder / "temporary")}
    (workflow.folder / "temporary").mkdir()
    run = workflow.start("prefork", *options, env=settings, start_new_session=True)
    wait_for(lambda: reached(stage, workflow.folder, run.pid), run)
    hit(target, number, run.pid)
    output, _ = run.communicate(timeout=60)
    assert nothing_is_left_of(run.pid)
    said = "jobs run as by the local executor"
    assert output.count(said) == (target == "zygote" and number == signal.SIGKILL), output
    if run.returncode != 0:
        workflow.run("prefork", *options, "--unlock")
    code, output = workflow.run("prefork", *options, "--rerun-incomplete", env=settings)
    assert code == 0, output
    ends = subprocess.run(
        [sys.executable, "-c", f"print(*map(hash, {jobs}))"],
        env=os.environ | settings,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    expected = {
        f"out/{job}": f"{job * 3000}{end}".encode() for job, end in zip(jobs, ends, strict=True)
    }
    # Both end Snakemake at once: where it waits for imports, an empty folder stays.
    left = [*(workflow.folder / "temporary").glob("prefork-*")]
    at_once = number in (signal.SIGHUP, signal.SIGKILL) and target in ("group", "run")
    assert len(left) <= (stage == "importing" and at_once)
    assert workflow.made() == expected


def memory_of(process: int, key: str = "Rss") -> int:
    """Return the kilobytes of a process."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def test_two_thousand_jobs_leave_nothing_behind_them(workflow: Workflow) -> None:
    """Neither memory nor open files of the run and of what it forks from grow with jobs."""
    script = "open(snakemake.output[0], 'w').write('made')\n"
    workflow.write(script, "resources: prefork_preload='json'")
    jobs = [str(number) for number in range(2000)]
    with (workflow.folder / "printed").open("w") as printed:
        run = workflow.start(
            "prefork", "--scheduler", "greedy", "--config", f"jobs={' '.join(jobs)}", to=printed
        )
        seen = []
        for share in (200, 1900):
            wait_for(lambda share=share: len([*workflow.folder.glob("out/*")]) >= share, run)
            (zygote,) = zygotes_of(run.pid)
            files = [len(os.listdir(f"/proc/{pid}/fd")) for pid in (run.pid, zygote)]
            seen.append((memory_of(run.pid), memory_of(zygote), files))
        run.communicate(timeout=600)
    assert run.returncode == 0
    (run_before, before, files_before), (run_after, after, files_after) = seen
    print(seen)
    assert after - before < 500
    # Of 1,700 jobs Snakemake itself keeps something.
    assert run_after - run_before < 20_000
    # A job at work has two files open in the one, two in the other.
    assert all(abs(b - a) <= 8 for a, b in zip(files_before, files_after, strict=True))
    assert len(workflow.made()) == 2000


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """A group of processes that may have 600 MB together; the file that takes a process in."""
    base = Path("/sys/fs/cgroup/memory")
    name = "memory.limit_in_bytes"
    if not base.is_dir():
        base, name = Path("/sys/fs/cgroup"), "memory.max"
    group = base / f"prefork-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("needs the right to make a group of processes")
    try:
        if not (group / name).exists():
            pytest.skip("the memory of a group cannot be bounded here")
        (group / name).write_text(str(600 << 20))
        for swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            with suppress(OSError):
                (group / swap).write_text("0" if swap.endswith("max") else str(600 << 20))
        yield group / "cgroup.procs"
    finally:
        for _ in range(100):
            with suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def test_a_job_without_enough_memory_is_killed_alone(
    workflow: Workflow, little_memory: Path
) -> None:
    script = """
import os
if snakemake.wildcards.job == "b":
    held = bytearray(os.urandom(1 << 20)) * 2000
open(snakemake.output[0], "w").write(str(os.getppid()))
"""
    held = "held = bytearray(b'1') * (200 << 20)\n"
    workflow.write(script, "resources: prefork_preload='heavy'", heavy=held)
    jobs = "jobs=a b c d e f"
    code, output = workflow.run(
        "prefork", "--keep-going", "--config", jobs,
        preexec_fn=lambda: little_memory.write_text(str(os.getpid())),
    )  # fmt: skip
    made = workflow.made()
    assert code == 1, output
    assert sorted(made) == [f"out/{job}" for job in "acdef"]
    # One process was there for all.
    assert len(set(made.values())) == 1
    assert "jobs run as by the local executor" not in output
