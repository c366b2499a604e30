"""Corruptions by image size, and the jobs of the figure `robustness` of the study mini."""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import numpy.typing as npt

from bench.rows import Row
from vitscope.corruptions import CORRUPTIONS, SEVERITIES
from vitscope.corruptions.kinds import corrupt
from vitscope.data.sources.shapes32 import draw_shapes

ROOT = Path(__file__).resolve().parents[1]
IMAGES, LARGE_IMAGES = 300, 16


def _seconds(images: npt.NDArray[np.uint8], corruption: str) -> float:
    """Return the seconds that all severities take, once what is made once is there."""
    rows = np.arange(len(images))
    corrupt(images[:1], corruption, 1, rows[:1])
    start = perf_counter()
    for severity in SEVERITIES:
        corrupt(images, corruption, severity, rows)
    return perf_counter() - start


def _job_seconds(folder: Path, pattern: str) -> list[float]:
    """Return what the jobs took, as Snakemake measured it."""
    times = []
    for path in sorted((folder / "benchmarks").glob(pattern)):
        with path.open(encoding="utf-8", newline="") as file:
            times += [float(row["s"]) for row in csv.DictReader(file, delimiter="\t")]
    return times


def measure_corruptions() -> list[Row]:
    """Time every corruption for 1,000 images, mean over severities."""
    small = draw_shapes("test", np.arange(IMAGES), seed=0).pixels.transpose(0, 3, 1, 2).copy()
    large = small[:LARGE_IMAGES].repeat(7, axis=2).repeat(7, axis=3)
    rows, total = [], 0.0
    for name in CORRUPTIONS:
        here, there = _seconds(small, name), _seconds(large, name)
        total += here
        value, larger = (
            1000 * seconds / count / len(SEVERITIES)
            for seconds, count in ((here, IMAGES), (there, LARGE_IMAGES))
        )
        what = f"{name}: 1,000 images of 32 pixels, one severity"
        rows.append(Row(what, value, "s", None, f"of 224 pixels: {larger:.3g} s"))
    what = f"{IMAGES} images of 32 pixels under all corruptions and severities"
    return [*rows, Row(what, total, "s", 5)]


def measure_jobs() -> list[Row]:
    """Time the jobs of the figure on one core."""
    snakemake = [str(Path(sys.executable).with_name("snakemake")), "-s", str(ROOT / "Snakefile")]
    profile = ["--workflow-profile", str(ROOT / "profiles" / "default"), "-c1"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = perf_counter()
        command = [*snakemake, *profile, "figures/robustness.pdf"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        whole = perf_counter() - start
        corrupting = _job_seconds(folder, "mini/corrupted/*/*.tsv")
        measuring = _job_seconds(folder, "mini/robustness/*/*.tsv")
    detail = f"one core; {len(corrupting)} jobs that corrupt, {len(measuring)} that measure"
    return [
        Row("`snakemake figures/robustness.pdf`", whole, "s", None, detail),
        Row("a job that corrupts the images of mini, median", median(corrupting), "s"),
        Row("a job that measures a model of mini, median", median(measuring), "s"),
        Row("the longest of these", max(measuring), "s"),
    ]


def measure() -> list[Row]:
    """Time the corruptions, and the jobs of the figure."""
    return [*measure_corruptions(), *measure_jobs()]
