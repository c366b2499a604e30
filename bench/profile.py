"""Where the time of the default study goes: every rule, and how much of it is imports."""

import csv
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.rows import Row, as_table  # noqa: E402
from tests.runs.copies import copy_workflow  # noqa: E402

# The most that may be start-up, of the time of all jobs.
BOUND = 0.25
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
# Figures of the loss have a bound of their own: they take most of the time.
STAGES = {
    "a clean copy: the figures of feature maps and predictions": (
        [f"figures/{name}.pdf" for name in OF_MAPS],
        150,
    ),
    "then `snakemake`: the figures of the loss, all tables, claims": ([], 150),
}


# What runs Snakemake: each job reports its imports, in microseconds, without what these import in
# turn. Snakemake's own process has started by then, and reports none.
IMPORT = re.compile(r"^import time: +(\d+) \|", re.MULTILINE)
TIMED = """
import os, sys
from snakemake.cli import main
os.environ["PYTHONPROFILEIMPORTTIME"] = "1"
main(sys.argv[1:])
"""


@dataclass(frozen=True)
class Job:
    """A job, from the start of its process to the end."""

    rule: str
    seconds: float


def run_timed(root: Path, *arguments: str) -> tuple[float, float]:
    """Run Snakemake in a copy of the workflow; return its seconds, and those of jobs' imports."""
    command = [sys.executable, "-c", TIMED, *arguments, "--benchmark-extended", "--quiet", "all"]
    start = perf_counter()
    done = subprocess.run(
        command,
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    return perf_counter() - start, sum(map(int, IMPORT.findall(done.stderr))) / 1e6


def jobs_of(root: Path) -> list[Job]:
    """Return the jobs of a run, from Snakemake's own records."""
    jobs = []
    for path in sorted((root / "benchmarks").rglob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as rows:
            (record,) = csv.DictReader(rows, delimiter="\t")
        jobs.append(Job(record["rule_name"], float(record["s"])))
    return jobs


def rows_of(jobs: list[Job], imports: float) -> list[Row]:
    """Return the share of imports in the time of all jobs, and the time of every rule."""
    rules: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        rules[job.rule].append(job.seconds)
    total = sum(job.seconds for job in jobs)
    detail = f"{len(jobs)} jobs, {total:.0f} s one after another, {imports:.0f} s of it imports"
    rows = [
        Row("start-up, of the time of all jobs", 100 * imports / total, "%", 100 * BOUND, detail)
    ]
    for rule, seconds in sorted(rules.items(), key=lambda item: -sum(item[1])):
        detail = f"{len(seconds)} jobs, the longest {max(seconds):.1f} s"
        rows.append(Row(f"rule {rule}", sum(seconds), "s", detail=detail))
    return rows


def measure(*targets: str) -> list[Row]:
    """Make the default study, or targets of it, in a copy of the workflow."""
    stages = {f"`snakemake {' '.join(targets)}`": ([*targets], None)} if targets else STAGES
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "vitscope"
        copy_workflow(copy, Path(folder))
        rows, imports = [], 0.0
        for what, (wanted, bound) in stages.items():
            seconds, of_imports = run_timed(copy, *wanted)
            rows.append(Row(what, seconds, "s", bound))
            imports += of_imports
        return [*rows, *rows_of(jobs_of(copy), imports)]


def main() -> None:
    """Tell where the time goes; fail if too much of it is start-up."""
    rows = measure(*sys.argv[1:])
    print("\n".join(as_table(rows)))
    sys.exit(not all(row.met for row in rows))


if __name__ == "__main__":
    main()
