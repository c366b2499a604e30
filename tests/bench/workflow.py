"""The commands of the README in a fresh clone, with and without the installation."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from tests.bench.rows import Row

ROOT = Path(__file__).resolve().parents[2]


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


OF_MAPS = (
    "fig2a",
    "fig2b",
    "fig8",
    "fig9",
    "fig10a",
    "fig10b",
    "figD1",
    "figD2",
    "spectrum",
    "shape_texture",
    "reliability",
    "robustness",
)


def _rules(clone: Path) -> list[Row]:
    """Sum the time of the jobs of each rule, as Snakemake wrote it down."""
    jobs: dict[str, list[float]] = {}
    for path in (clone / "benchmarks").rglob("*.tsv"):
        with path.open(encoding="utf-8", newline="") as lines:
            (record,) = csv.DictReader(lines, delimiter="\t")
        jobs.setdefault(record["rule_name"], []).append(float(record["s"]))
    spent = sorted(jobs.items(), key=lambda item: -sum(item[1]))
    detail = "{} jobs, the longest {:.1f} s"
    return [
        Row(f"rule {rule}", sum(times), "s", detail=detail.format(len(times), max(times)))
        for rule, times in spent
    ]


def measure_study() -> list[Row]:
    """Time all figures of the default study from a clean clone, and each rule in it.

    Figures of the loss have a bound of their own: they take most of the time.
    """
    command = ["snakemake", "--benchmark-extended"]
    with _clone() as clone:
        maps = _seconds([*command, *(f"figures/{name}.pdf" for name in OF_MAPS)], clone)
        rest = _seconds(command, clone)
        rules = _rules(clone)
    return [
        Row("a clean clone: the figures of feature maps and predictions", maps, "s", 300),
        Row("then `snakemake`: the figures of the loss, all tables, claims", rest, "s", 480),
        *rules,
    ]


def measure() -> list[Row]:
    """Time the figure from a clean clone, nothing to do, and a new style."""
    figure = ["snakemake", "figures/fig9.pdf"]
    with _clone() as clone:
        first = _seconds(figure, clone)
        nothing = _seconds(figure, clone)
        style = clone / "resources" / "style.mplstyle"
        style.write_text(style.read_text(encoding="utf-8") + "\nlines.linewidth: 1.1\n")
        restyled = _seconds(figure, clone)
    return [
        Row("`snakemake figures/fig9.pdf` in a clean clone", first, "s", 30),
        Row("the same, nothing to do", nothing, "s", 3),
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
