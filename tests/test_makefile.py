import os
import subprocess
from pathlib import Path

import pytest

from vitscope.package_data import ROOT


def command(place: Path, name: str, text: str) -> None:
    (place / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (place / name).chmod(0o755)


def make(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make, which finds the commands of a folder and of the system."""
    environment = {**os.environ, "PATH": f"{place}:/usr/bin:/bin"}
    line = ["make", "-f", ROOT / "Makefile", "VENV=environment", *arguments]
    return subprocess.run(line, cwd=place, env=environment, capture_output=True, text=True)


def test_it_takes_the_first_python_that_runs(tmp_path: Path) -> None:
    # As a version manager has a command of a version that is not installed.
    command(tmp_path, "python3.11", "echo 'python3.11: not found' >&2; exit 127")
    command(tmp_path, "python3.12", "exit 0")
    planned = make(tmp_path, "-n", "environment/bin/python")
    assert "python3.12 -m venv environment" in planned.stdout.splitlines()


@pytest.mark.parametrize("given", [["PYTHON=old"], ["PYTHON=none"]])
def test_it_names_a_python_that_will_not_do(tmp_path: Path, given: list[str]) -> None:
    command(tmp_path, "old", "exit 1")
    done = make(tmp_path, "environment/bin/python", *given)
    assert done.returncode == 2
    name = given[0].removeprefix("PYTHON=")
    assert f"vitscope: {name} is no Python 3.11 to 3.13: name one, as in" in done.stderr
