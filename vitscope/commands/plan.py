"""Tell what a study will cost, before anything runs.

Which jobs would run is what Snakemake says: what is made already is not in the plan.
"""

import csv
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.commands.workflow import (
    Asked,
    add_study,
    asked_for,
    refuse_without_workflow,
    snakemake,
)

if TYPE_CHECKING:
    from vitscope.workflow.plan import Planned

DRAWING = (
    "draw_figure",
    "draw_default_figure",
    "draw_video",
    "draw_default_video",
    "draw_buildup",
    "draw_default_buildup",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Let a parser take what this command takes."""
    add_study(parser)
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="what to plan, as figures/paper/fig9.pdf; if left out, all of the study",
    )


def run(arguments: Namespace) -> None:
    """Print the plan of every study that has jobs to run."""
    from vitscope.settings.loading import load_config
    from vitscope.workflow.plan import Planned, as_text, by_rule, costs_of

    refuse_without_workflow()
    asked = asked_for(arguments.study)
    default, studies, _ = load_config(asked.settings, "config/config.yaml")
    planned: dict[str, list[Planned]] = {}
    for job in _jobs(asked, *(arguments.targets or asked.targets)):
        # Figures of the default study, and targets of all studies, lie in no folder of its name.
        named = job.outputs[0].parts[:1]
        planned.setdefault(named[0] if named and named[0] in studies else default, []).append(job)
    if not planned:
        print("Nothing to be done.")
    # Jobs have one thread each; libraries read this when they are imported.
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    most_gb = asked.settings.get("max_latents_gb")
    known = partial(earlier, Path(asked.folders["benchmarks"]), default)
    for name, of_study in planned.items():
        print(as_text(studies[name], by_rule(costs_of(studies[name], of_study, known)), most_gb))


def _output_of(asked: Asked, *arguments: str) -> str:
    """Return what Snakemake prints to its standard output, or end as it ends."""
    done = snakemake(asked, *arguments, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.strip().splitlines()[-1])
    return done.stdout


def _counts(asked: Asked, *targets: str) -> dict[str, int]:
    """Return how many jobs of each rule a dry run counts."""
    _, _, jobs = _output_of(asked, "-n", *targets).partition("Job stats:")
    found = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", jobs, re.MULTILINE)}
    found.pop("total", None)
    return found


def _jobs(asked: Asked, *targets: str) -> "list[Planned]":
    """Return the jobs that would run, by what they write to the folders of the workflow."""
    from vitscope.workflow.plan import Planned

    summary = _output_of(asked, "--detailed-summary", *targets)
    lines = csv.DictReader(summary.splitlines(), delimiter="\t")
    pending = [line for line in lines if line["plan"] == "update pending"]
    found: list[Planned] = []
    counted = _counts(asked, *targets)
    for rule, of_rule in groupby(sorted(pending, key=_rule_of), _rule_of):
        paths = [Path(line["output_file"]) for line in of_rule]
        # A job has as many lines as outputs, one after another.
        each = len(paths) // counted[rule]
        for first in range(0, len(paths), each):
            outputs = paths[first : first + each]
            folder = asked.folders["figures" if rule in DRAWING else "results"]
            found.append(Planned(rule, tuple(path.relative_to(folder) for path in outputs)))
    return found


def _rule_of(line: dict[str, str]) -> str:
    return line["rule"]


def records_of(job: "Planned", default: str) -> list[Path]:
    """Return where the record of a job may be, below the folder of records."""
    places = [output.with_suffix(".tsv") for output in job.outputs]
    if job.rule == "draw_default_figure":
        return [Path(default, "figures", f"default_{places[0].name}")]
    if job.rule == "draw_figure":
        return [places[0].parent / "figures" / places[0].name]
    if job.rule == "draw_default_video":
        return [Path(default, "videos", f"default_{job.outputs[0].name}.tsv")]
    if job.rule == "draw_video":
        return [job.outputs[0].parent / "videos" / f"{job.outputs[0].name}.tsv"]
    if job.rule == "draw_default_buildup":
        return [Path(default, "buildups", f"default_{places[0].name}")]
    if job.rule == "draw_buildup":
        return [places[0].parent / "buildups" / places[0].name]
    if job.rule in ("train_model", "train_step"):
        return [places[0].parent.with_suffix(".tsv")]
    return places


def earlier(records: Path, default: str, job: "Planned") -> float | None:
    """Return the seconds of a job in an earlier run, or the mean of its siblings."""
    places = [records / place for place in records_of(job, default)]
    found = [place for place in places if place.is_file()]
    siblings = [file for place in places for file in sorted(place.parent.glob("*.tsv"))]
    seconds = [_seconds_of(file) for file in found or siblings]
    return sum(seconds) / len(seconds) if seconds else None


def _seconds_of(record: Path) -> float:
    with record.open(encoding="utf-8", newline="") as lines:
        return float(next(csv.DictReader(lines, delimiter="\t"))["s"])
