"""A workflow of ten lines, and the real `snakemake`."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
SNAKEFILE = """
JOBS = config.get("jobs", "a b c").split()
rule all:
    input: expand("out/{job}", job=JOBS)
rule one:
    output: "out/{job}"
    log: "logs/{job}"
    OPTIONS
    script: "one.py"
"""


@dataclass
class Workflow:
    folder: Path

    def write(self, script: str, options: str = "threads: 1", **files: str) -> None:
        (self.folder / "Snakefile").write_text(SNAKEFILE.replace("OPTIONS", options))
        (self.folder / "one.py").write_text(script)
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)

    def start(self, executor: str, *arguments: str, **options) -> subprocess.Popen:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--executor", executor]
        variables = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            env=variables | options.pop("env", {}),
            stdout=options.pop("to", subprocess.PIPE),
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )

    def run(self, executor: str, *arguments: str, **options) -> tuple[int, str]:
        process = self.start(executor, *arguments, **options)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def made(self, *folders: str) -> dict[str, bytes]:
        """Return the files that jobs wrote, and forget them and the run."""
        folders = folders or ("out",)
        files = [file for name in folders for file in (self.folder / name).rglob("*")]
        found = {
            str(file.relative_to(self.folder)): file.read_bytes()
            for file in files
            if file.is_file()
        }
        subprocess.run(["rm", "-rf", "out", "logs", ".snakemake"], cwd=self.folder, check=True)
        return found


def nothing_is_left_of(group: int) -> bool:
    """Wait until no process of a group is there; what has ended is not there."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(autouse=True)
def signals_as_of_a_terminal() -> Iterator[None]:
    """What is started in the background by a shell ignores Ctrl-C, and with it all that it starts."""
    wanted = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, action) for number, action in wanted.items()}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.fixture
def workflow(tmp_path: Path) -> Workflow:
    return Workflow(tmp_path)


def words(output: str) -> list[str]:
    """Return what a run printed of its jobs, sorted, without dates, numbers and temporary names."""
    _, _, jobs = output.partition("Job stats:")
    jobs = re.sub(
        r"^\[.*\]$|^.*\.snakemake/log/.*$|^Elapsed time: .*$", "", jobs, flags=re.MULTILINE
    )
    jobs = re.sub(r"tmp\w+\.one|jobid: \d+|\(\d+%\)|\d+ of \d+", "", jobs)
    return sorted(filter(None, jobs.splitlines()))
