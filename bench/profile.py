"""Where the time of the default study goes: every rule, and how much of it is not its work."""

import csv
import json
import os
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
from scripts._times import WANTED  # noqa: E402
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
        300,
    ),
    "then `snakemake`: the figures of the loss, all tables, claims": ([], 480),
}


@dataclass(frozen=True)
class Job:
    """A job: from the start of its process to the end, and its own lines without imports."""

    rule: str
    seconds: float
    work: float


def run_timed(root: Path, *arguments: str) -> float:
    """Run Snakemake in a copy of the workflow; return its seconds, leave those of its jobs."""
    command = [Path(sys.executable).with_name("snakemake"), *arguments]
    command += ["--benchmark-extended", "--quiet", "all"]
    times = root / "times.jsonl"
    start = perf_counter()
    subprocess.run(
        command,
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(root), WANTED: str(times)},
    )
    return perf_counter() - start


def jobs_of(root: Path) -> list[Job]:
    """Return the jobs of a run: Snakemake's own records beside those of the scripts."""
    lines = (root / "times.jsonl").read_text(encoding="utf-8").splitlines()
    work = {Path(log).with_suffix(""): seconds for log, seconds, *_ in map(json.loads, lines)}
    jobs = []
    for path in sorted((root / "benchmarks").rglob("*.tsv")):
        name = Path("logs", path.relative_to(root / "benchmarks")).with_suffix("")
        with path.open(encoding="utf-8", newline="") as rows:
            (record,) = csv.DictReader(rows, delimiter="\t")
        jobs.append(Job(record["rule_name"], float(record["s"]), work[name]))
    return jobs


def share_of_start_up(jobs: list[Job]) -> float:
    """Return how much of the time of jobs is not work: interpreter, imports and end."""
    return 1 - sum(job.work for job in jobs) / sum(job.seconds for job in jobs)


def rows_of(jobs: list[Job]) -> list[Row]:
    """Return the share of all, and the time of every rule, the longest first."""
    rules: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        rules[job.rule].append(job)
    total = sum(job.seconds for job in jobs)
    start_up = 100 * share_of_start_up(jobs)
    detail = f"{len(jobs)} jobs, {total:.0f} s one after another"
    rows = [Row("start-up, of the time of all jobs", start_up, "%", 100 * BOUND, detail)]
    for rule, of_rule in sorted(rules.items(), key=lambda item: -sum(j.seconds for j in item[1])):
        seconds = [job.seconds for job in of_rule]
        each = (sum(seconds) - sum(job.work for job in of_rule)) / len(of_rule)
        detail = (
            f"{len(of_rule)} jobs, the longest {max(seconds):.1f} s, {each:.2f} s each to start"
        )
        rows.append(Row(f"rule {rule}", sum(seconds), "s", detail=detail))
    return rows


def measure(*targets: str) -> list[Row]:
    """Make the default study, or targets of it, in a copy of the workflow."""
    stages = {f"`snakemake {' '.join(targets)}`": ([*targets], None)} if targets else STAGES
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "vitscope"
        copy_workflow(copy, Path(folder))
        rows = [
            Row(what, run_timed(copy, *wanted), "s", bound)
            for what, (wanted, bound) in stages.items()
        ]
        return [*rows, *rows_of(jobs_of(copy))]


def main() -> None:
    """Tell where the time goes; fail if too much of it is start-up."""
    rows = measure(*sys.argv[1:])
    print("\n".join(as_table(rows)))
    sys.exit(not all(row.met for row in rows))


if __name__ == "__main__":
    main()
