"""What Snakemake itself takes for a study of many shards: planned, and run with empty jobs.

The rules are those of the workflow. Jobs of shards, and the merge, only touch what they would
write, so that the time is Snakemake's and that of starting Python.
"""

import argparse
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from bench.rows import Row, as_table
from tests.runs.copies import Workflow, copy_workflow, write_study, write_weights

STUDY, MODEL = "dag", "vit"
TARGET = f"results/{STUDY}/feature_variance/{MODEL}.parquet"
EMPTY = ("extract_latents", "measure_latents", "merge")
SCRIPT = f"""
from pathlib import Path
if snakemake.rule in {EMPTY}:
    Path(snakemake.output[0]).touch()
else:
    from runpy import run_path
    run_path("scripts/real_job.py", {{"snakemake": snakemake}})
"""


class Taken(NamedTuple):
    """What a process and its children took: seconds, of them of processors, and MiB at most."""

    seconds: float
    processor: float
    memory: float
    ended: bool


def taken(workflow: Workflow, limit: int, *arguments: str) -> Taken:
    """Run `snakemake` to its end, or so many seconds."""
    start = perf_counter()
    log = workflow.root / "out.txt"
    with log.open("w", encoding="utf-8") as out:
        process = workflow.start(*arguments, default=STUDY, stdout=out, start_new_session=True)
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(limit)
        _, status, used = os.wait4(process.pid, 0)
        signal.alarm(0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, -signal.SIGKILL):
        raise subprocess.CalledProcessError(process.returncode, arguments, log.read_text()[-2000:])
    seconds = perf_counter() - start
    ended = process.returncode == 0
    return Taken(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, ended)


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
    scripts = workflow.root / "scripts"
    shutil.move(scripts / "run_job.py", scripts / "real_job.py")
    (scripts / "run_job.py").write_text(SCRIPT, encoding="utf-8")
    return workflow


def _row(what: str, found: Taken, jobs: int) -> Row:
    each = f"{1000 * found.processor / jobs:.1f} ms of processor time a job"
    detail = f"{each}, {found.memory:.0f} MiB"
    return Row(what, found.seconds, "s" if found.ended else "s, ended by its limit", None, detail)


def measure_count(jobs: int, run: bool, limit: int, options: list[str]) -> list[Row]:
    """Plan so many jobs, two for each shard, and run them as well."""
    with tempfile.TemporaryDirectory() as folder:
        workflow = workflow_of(jobs // 2, Path(folder))
        dry = taken(workflow, limit, "-n", "-q", "all", *options, TARGET)
        rows = [_row(f"{jobs:,} jobs: `snakemake -n`", dry, jobs)]
        if run and dry.ended:
            ran = taken(workflow, limit, "--cores", "2", "-q", "all", *options, TARGET)
            rows.append(_row(f"{jobs:,} jobs: run, each empty", ran, jobs))
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
