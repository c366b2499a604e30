"""What Snakemake itself takes for a study of many shards: planned, and run with empty jobs.

The rules are those of the workflow, but that jobs of shards, what is before them and the merge only
touch what they would write, so that nearly all of the time is Snakemake's.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

from bench.rows import Row, as_table
from tests.runs.copies import Workflow, copy_workflow, write_study, write_weights

STUDY, MODEL = "dag", "vit"
# How often its memory is looked at, and how the system counts time.
SECONDS, TICKS = 0.2, os.sysconf("SC_CLK_TCK")
TARGET = f"results/{STUDY}/feature_variance/{MODEL}.parquet"
# In place of the script of these rules, one that starts no Python.
EMPTIED = ("data.smk", "latents.smk", "measures.smk")
SCRIPT = 'touch "${snakemake_output[0]}"\n'


class Taken(NamedTuple):
    """What Snakemake took: seconds, of its own and its jobs' processors too, and MiB at most."""

    seconds: float
    processor: float
    of_jobs: float
    memory: float
    ended: bool
    done: int


def _times(process: Path) -> tuple[float, float]:
    """Return the seconds of processors of a process, and of its children that have ended."""
    times = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    own, child = (sum(map(int, times[first : first + 2])) / TICKS for first in (11, 13))
    return own, child


def _peak(process: Path) -> float:
    """Return the most MiB that a process had so far: none, when it has ended."""
    status = (process / "status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) / 1024 if found else 0.0


def taken(workflow: Workflow, limit: float, *arguments: str) -> Taken:
    """Run `snakemake` to its end, or end it after so many seconds."""
    start, memory, log = perf_counter(), 0.0, workflow.root / "out.txt"
    with log.open("w", encoding="utf-8") as out:
        process = workflow.start(*arguments, default=STUDY, stdout=out, start_new_session=True)
    seen = Path("/proc", str(process.pid))
    # It stays there until it is asked how it ended: what it took can be read to the last.
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        memory = max(memory, _peak(seen))
        if perf_counter() - start > limit:
            os.killpg(process.pid, signal.SIGKILL)
        sleep(SECONDS)
    seconds, times = perf_counter() - start, _times(seen)
    if process.wait() not in (0, -signal.SIGKILL):
        sys.exit(log.read_text(encoding="utf-8")[-2000:])
    done = sum(1 for _ in (workflow.root / "benchmarks").rglob("*.tsv"))
    return Taken(seconds, *times, memory, process.returncode == 0, done)


def workflow_of(shards: int, folder: Path) -> Workflow:
    """Return a copy of the workflow whose study has so many shards, of one image each."""
    weights = write_weights(folder / "weights")

    def many_shards(settings: dict[str, Any]) -> None:
        del settings["models"]["resnet"]
        settings["models"][MODEL]["checkpoint"] = {"path": str(weights[MODEL])}
        settings["data"]["shapes32"]["splits"]["test"]["images"] = shards
        settings["analysis"] = {"images": shards, "shard_size": 1, "keep_latents": False}
        settings["figures"] = {"fig9": {"kind": "feature_variance", "models": [MODEL]}}

    (folder / "studies").mkdir()
    write_study(folder / "studies" / f"{STUDY}.yaml", many_shards)
    workflow = copy_workflow(folder / "vitscope", folder / "studies")
    (workflow.root / "scripts" / "touch.sh").write_text(SCRIPT, encoding="utf-8")
    for name in EMPTIED:
        rules = workflow.root / "rules" / name
        text = rules.read_text(encoding="utf-8").replace("run_job.py", "touch.sh")
        rules.write_text(text, encoding="utf-8")
    return workflow


def _row(what: str, found: Taken, jobs: int, planning: float = 0.0) -> Row:
    """Say what Snakemake took, of a run without what it took to plan it."""
    each = 1000 * (found.processor - planning) / max(jobs, 1)
    detail = (
        f"{found.processor:.1f} s of processor time, {each:.1f} ms a job; {found.memory:.0f} MiB"
    )
    if planning:
        beside = 1000 * found.of_jobs / max(jobs, 1)
        detail += f"; {jobs:,} jobs done, each {beside:.0f} ms beside Snakemake"
    return Row(what, found.seconds, "s" if found.ended else "s, ended by its limit", None, detail)


def measure_count(jobs: int, run: bool, limit: int, options: list[str]) -> list[Row]:
    """Plan so many jobs, one for each shard, and run them as well."""
    what = " ".join([f"{jobs:,} jobs", *options])
    with tempfile.TemporaryDirectory() as folder:
        workflow = workflow_of(jobs, Path(folder))
        dry = taken(workflow, limit, TARGET, "-n", *options, "-q", "all")
        rows = [_row(f"{what}: `snakemake -n`", dry, jobs)]
        if run and dry.ended:
            ran = taken(workflow, limit, TARGET, "--cores", "1", *options, "-q", "all")
            rows.append(_row(f"{what}: run, each empty", ran, ran.done, dry.processor))
    return rows


def main() -> None:
    """Measure some numbers of jobs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="+", type=int)
    parser.add_argument("--run", action="store_true", help="run the jobs as well")
    parser.add_argument("--limit", type=int, default=360, help="end after so many seconds")
    parser.add_argument("--options", default="", help="more options of snakemake")
    asked = parser.parse_args()
    for jobs in asked.jobs:
        rows = measure_count(jobs, asked.run, asked.limit, asked.options.split())
        print("\n".join(as_table(rows)), flush=True)


if __name__ == "__main__":
    main()
