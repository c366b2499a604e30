import fcntl
import os
import platform
import re
import subprocess
import sys
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.helpers.every_job import everything, kinds
from tests.helpers.processes import python
from vitscope.jobs.job import Request, find_job
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

ROOT = Path(__file__).parents[2]
FRAME = """
import sys
import {imports}
from vitscope.errors import VitscopeError
from vitscope.jobs.job import Job
class Named(dict):
    __getattr__ = dict.__getitem__
def run(inputs, outputs, values, resources):
{body}
snakemake = Named(
    log=[sys.argv[1]], threads=3, wildcards=Named(model="vit"), input=Named(), output=Named(),
    resources=Named(), params=Named(values={{"device": {device!r}}}, code=""), rule="trial",
)
from scripts._job import run_job
run_job(Job(run=run, batches={batches!r}), snakemake)
"""


def start(
    log: Path,
    body: str,
    imports: str = "os",
    batches: str | None = None,
    device: str = "cpu",
    **pipes: Any,
) -> subprocess.Popen[str]:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    code = FRAME.format(imports=imports, batches=batches, device=device, body=indented)
    pipes = pipes or {"stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", code, str(log)], cwd=ROOT, text=True, **pipes)


class Done(NamedTuple):
    code: int
    printed: str
    logged: str


def run(log: Path, body: str, imports: str = "os", batches: str | None = None) -> Done:
    """Run a job, which writes nothing to stderr."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(log, body, imports, batches, **both) as process:
        printed, errors = process.communicate()
    assert errors == ""
    return Done(process.returncode, printed, log.read_text(encoding="utf-8"))


def test_what_is_printed_goes_to_the_terminal_and_the_log(tmp_path: Path) -> None:
    body = "print('höllo')\nprint(sys.stdout.isatty(), sys.stdout.writable())"
    # Without need torch is not imported.
    body += "\nprint('torch' in sys.modules, end='', flush=True)"
    printed = "höllo\nFalse True\nFalse"
    assert run(tmp_path / "new" / "log.txt", body) == (0, printed, printed)


def test_long_work_says_what_it_is_and_how_far_and_not_while_it_says_more(tmp_path: Path) -> None:
    impatient = "time\nfrom vitscope import progress\nprogress.SECONDS_OF_SILENCE = 0.5"
    body = """\
resources.count(30)
resources.count(12)
time.sleep(0.8)
for number in range(6):
    resources.say_of_it(number)
    time.sleep(0.2)"""
    done = run(tmp_path / "log.txt", body, impatient)
    news, *own = done.printed.splitlines()
    assert re.fullmatch(r"vit, trial: 42 images, [\d.]+ images per s, 1 s so far", news)
    assert own == [f"vit: {number}" for number in range(6)]
    assert done.logged == done.printed


def test_an_expected_failure_is_one_sentence_which_the_run_tells(tmp_path: Path) -> None:
    body = "print('begins')\nraise VitscopeError('It is wrong: put it right.')"
    logged = "begins\nvitscope: It is wrong: put it right.\n"
    assert run(tmp_path / "log.txt", body) == (1, "begins\n", logged)


@pytest.mark.parametrize(
    ("body", "imports", "batches", "advice"),
    [
        ("raise MemoryError", "os", None, "run fewer jobs at a time"),
        (
            *("raise torch.OutOfMemoryError('x')", "torch", "analysis.batch_size"),
            "lower analysis.batch_size in the study",
        ),
    ],
)
def test_too_little_memory_is_one_sentence(
    tmp_path: Path, body: str, imports: str, batches: str | None, advice: str
) -> None:
    code, _, logged = run(tmp_path / "log.txt", body, imports, batches)
    assert (code, logged) == (1, f"vitscope: not enough memory: {advice}.\n")


def test_jobs_that_run_models_name_the_setting_of_their_batches() -> None:
    settings = load_study(BUNDLED_STUDIES / "mini.yaml").settings
    named = set()
    for name, chosen in kinds():
        job, study = find_job(name), everything()
        setting = job.batch_setting(chosen, job.values(study, chosen))
        # Of a video, one frame is in memory at a time.
        takes = job.takes_of(Request(study, chosen))
        assert setting or not takes.work or name == "draw_video", name
        named |= {setting} if setting else set()
    assert {"analysis.batch_size", "analysis.hessian.sizes"} <= named
    for each in named:
        assert isinstance(reduce(getitem, each.split("."), settings), int | list), each


def test_a_job_waits_for_one_that_outlived_its_run_and_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with log.open("a", encoding="utf-8") as survivor:
        fcntl.flock(survivor, fcntl.LOCK_EX)
        with start(log, "print('second')") as waiting:
            line = waiting.stdout.readline()
            assert line == f"vitscope: waiting for a job of a killed run, whose log is {log}\n"
            survivor.write("first\n")
            survivor.flush()
            assert waiting.poll() is None
            fcntl.flock(survivor, fcntl.LOCK_UN)
            assert waiting.stdout.read() == "second\n"
    assert waiting.returncode == 0
    assert log.read_text(encoding="utf-8") == "second\n"


def test_an_unexpected_failure_is_logged_in_full(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    done = run(log, "raise ZeroDivisionError('why')")
    assert done.code == 1
    assert done.logged.startswith("Traceback")
    told = f"vitscope: nothing is known of this failure but {log}.\n"
    assert done.logged.endswith(f"ZeroDivisionError: why\n{told}")


def test_a_failure_in_a_network_names_its_module(tmp_path: Path) -> None:
    body = """
class Mine(torch.nn.Module):
    def forward(self, x):
        return x * self.scale
torch.nn.Sequential(torch.nn.Identity(), Mine())(torch.zeros(1))
"""
    done = run(tmp_path / "log.txt", body, "torch")
    assert done.code == 1
    first, *_, last = done.logged.splitlines()
    assert first.startswith("Traceback")
    assert last.startswith("vitscope: the module '1' (Mine) of the network fails at ")


def test_torch_uses_the_threads_of_the_job(tmp_path: Path) -> None:
    assert run(tmp_path / "log", "print(torch.get_num_threads())", "torch").printed == "3\n"


@pytest.mark.parametrize(
    ("visible", "device", "taken"),
    [
        ("0,1", "auto", ["0", "1", "0"]),
        ("2, GPU-8f", "cuda", ["2", "GPU-8f", "2"]),
        ("3", "auto", ["3", "3", "3"]),
        ("0,1", "cpu", ["0,1", "0,1", "0,1"]),
    ],
)
def test_jobs_at_once_take_the_gpus_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str, device: str, taken: list[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    body = "print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\nsys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "device": device}
    jobs, found = [], []
    for number in (1, 2, 3):
        jobs.append(start(tmp_path / f"{number}.txt", body, **pipes))
        found.append(jobs[-1].stdout.readline().strip())
    # The GPU of a job that has ended is free.
    jobs[1].communicate()
    jobs.append(start(tmp_path / "4.txt", body, **pipes))
    found.append(jobs[-1].stdout.readline().strip())
    for job in jobs:
        job.communicate()
    assert found == [*taken, taken[1]]


def taken_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a job prints that sees two GPUs and may take one of them, and which it is."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setenv("TMPDIR", str(folder))
    body = "print(os.environ['CUDA_VISIBLE_DEVICES'])"
    with start(folder / "log.txt", body, device="auto") as job:
        printed = job.stdout.read()
    assert job.returncode == 0
    return printed


OTHER_USER = 12345


@pytest.mark.parametrize("first", ["a link in it", "a link to a folder", "a file", "another's"])
def test_no_lock_of_a_gpu_is_written_through_what_another_user_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    locks, outside = tmp_path / f"vitscope-gpus-{os.getuid()}", tmp_path / "outside"
    outside.mkdir()
    if first == "a link to a folder":
        locks.symlink_to(outside)
    elif first == "a file":
        locks.touch()
    else:
        locks.mkdir()
    if first == "a link in it":
        (locks / "0.0").symlink_to(outside / "made")
    if first == "another's":
        if os.getuid():
            pytest.skip("needs the right to give a folder away")
        os.chown(locks, OTHER_USER, OTHER_USER)
    said, gpus = taken_gpu(tmp_path, monkeypatch).splitlines()
    assert said.startswith(f"vitscope: this job takes no GPU of its own, since {locks} cannot be")
    assert gpus == "0,1"
    assert [*outside.iterdir()] == []


def test_the_folder_of_locks_is_this_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = tmp_path / f"vitscope-gpus-{os.getuid()}"
    locks.mkdir(mode=0o777)
    assert taken_gpu(tmp_path, monkeypatch) == "0\n"
    assert [each.stat().st_mode & 0o777 for each in (locks, locks / "0.0")] == [0o700, 0o600]


def test_a_job_runs_where_nothing_can_be_locked(tmp_path: Path) -> None:
    body = "def no_locks(*_): raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))"
    imports = f"os, errno, fcntl\n{body}\nfcntl.flock = no_locks"
    assert run(tmp_path / "log.txt", "print('done')", imports).printed == "done\n"


AGAIN = """
from resource import RUSAGE_SELF, getrusage
from scripts._job import keep_memory
keep_memory()
size = 1 << 26
for _ in range(2):
    before = getrusage(RUSAGE_SELF).ru_minflt
    b"x" * size
print(getrusage(RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no other library can be told to")
def test_memory_that_passes_give_back_is_used_again() -> None:
    """Of 64 MiB in 16,384 pages, none is new the second time."""
    assert int(python(AGAIN, cwd=ROOT)) < 100


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("no folder")
    process = start(tmp_path / "logs" / "a.log", "pass", stderr=subprocess.PIPE)
    _, errors = process.communicate()
    assert process.returncode == 1
    said = r"vitscope: the log .*/logs/a.log cannot be written \(.+\): make room for it.\n"
    assert re.fullmatch(said, errors)
