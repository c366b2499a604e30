"""The commands of the README in a fresh clone, with and without the installation."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from bench.rows import Row

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def _clone() -> Iterator[Path]:
    """Yield a clone of the last commit in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "vitscope"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        yield clone


def _seconds(command: list[str], folder: Path) -> float:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    start = perf_counter()
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True, env={**os.environ, "PATH": path}
    )
    return perf_counter() - start


def _median(command: list[str], folder: Path) -> float:
    return median(_seconds(command, folder) for _ in range(5))


def _processor_seconds(command: list[str], folder: Path) -> float:
    """Return the median of the user and system time of a command, which has nothing to do."""

    def spent() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def spent_by_command() -> float:
        before = spent()
        _seconds(command, folder)
        return spent() - before

    return median(spent_by_command() for _ in range(5))


def _one_rule(folder: Path) -> Path:
    """Make a workflow of one rule, which has nothing to do."""
    folder.mkdir()
    (folder / "done").touch()
    text = 'rule all:\n    output: "done"\n    shell: "touch {output}"\n'
    (folder / "Snakefile").write_text(text, encoding="utf-8")
    _seconds(["snakemake", "--cores", "1", "--touch"], folder)
    shutil.copytree(ROOT / "profiles" / "default", folder / "profiles" / "default")
    return folder


def measure() -> list[Row]:
    """Time the figure from a clean clone, nothing to do, and a new style.

    Processor time is compared with one rule: other programs on the machine change it less.
    """
    figure = ["snakemake", "figures/fig9.pdf"]
    with _clone() as clone:
        first = _seconds(figure, clone)
        nothing = _median(figure, clone)
        alone = _processor_seconds(["snakemake"], _one_rule(clone.parent / "one_rule"))
        beside = _processor_seconds(figure, clone)
        style = clone / "vitscope" / "drawing" / "style.mplstyle"
        style.write_text(style.read_text(encoding="utf-8") + "\nlines.linewidth: 1.1\n")
        restyled = _seconds(figure, clone)
    return [
        Row("`snakemake figures/fig9.pdf` in a clean clone", first, "s", 30),
        Row("the same, nothing to do", nothing, "s", 3),
        Row("times a Snakefile of one rule, processor time", beside / alone, "", 1.2),
        Row("the same after a change of the style file", restyled, "s", 8),
    ]


def measure_installation() -> list[Row]:
    """Time the README's first command on a fresh clone, with everything that it installs."""
    with _clone() as clone:
        python = Path(sys.base_prefix) / "bin" / "python3"
        command = ["make", "figures/fig9.pdf", f"PYTHON={python}"]
        first = _seconds(command, clone)
        second = _seconds(command, clone)
        shutil.rmtree(clone / ".venv")
    return [
        Row("`make figures/fig9.pdf` on a fresh clone, installation included", first, "s"),
        Row("the same again, nothing to do", second, "s"),
    ]
