import os
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.processes import output_of
from tests.runs.copies import REPOSITORY

pytestmark = pytest.mark.nightly


def test_a_report_in_the_environment_that_the_readme_makes(tmp_path: Path) -> None:
    clone = tmp_path / "vitscope"
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    run = partial(output_of, cwd=clone, env=kept)
    output_of("git", "clone", "--quiet", REPOSITORY, clone)
    python = Path(sys.base_prefix) / "bin" / "python3"
    run("make", "figures/fig9.pdf", f"PYTHON={python}")
    binaries = clone / ".venv" / "bin"
    # Names and versions alone: a place that is shown may have any name in it.
    installed = run(binaries / "python", "-m", "pip", "list", "--format=freeze").lower()
    assert "snakemake==" in installed
    assert "pytest==" not in installed
    run(binaries / "snakemake", "figures/fig9.pdf", "--report", "report.html")
    assert (clone / "report.html").stat().st_size > 1e6
    planned = run(binaries / "vitscope", "plan", "mini", "figures/fig9.pdf")
    assert planned == "Nothing to be done.\n"
