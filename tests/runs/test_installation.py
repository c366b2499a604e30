"""What the README says first, in a fresh clone with an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.copies import REPOSITORY

pytestmark = pytest.mark.nightly


def test_a_report_in_the_environment_that_the_readme_makes(tmp_path: Path) -> None:
    clone = tmp_path / "vitscope"
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=clone, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    python = Path(sys.base_prefix) / "bin" / "python3"
    run("make", "figures/fig9.pdf", f"PYTHON={python}")
    binaries = clone / ".venv" / "bin"
    # Names and versions alone: a place that is shown may have any name in it.
    installed = run(str(binaries / "python"), "-m", "pip", "list", "--format=freeze").lower()
    assert "snakemake==" in installed
    assert "pytest==" not in installed
    run(str(binaries / "snakemake"), "figures/fig9.pdf", "--report", "report.html")
    assert (clone / "report.html").stat().st_size > 1e6
    assert run(str(binaries / "vitscope"), "plan", "mini", "figures/fig9.pdf") == (
        "Nothing to be done.\n"
    )
