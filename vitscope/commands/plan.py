"""Tell what a study will cost, before anything runs.

Snakemake tells which jobs would run, so that the plan leaves out files that exist already.
"""

import csv
import json
import os
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from vitscope.commands import workflow
from vitscope.commands.workflow import Asked
from vitscope.errors import VitscopeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vitscope.jobs.job import Names
    from vitscope.planning.costs_of_study import Cost, Planned
    from vitscope.settings.study import Study


def add_arguments(parser: ArgumentParser) -> None:
    workflow.add_study_argument(parser)
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="what to plan, as figures/paper/fig9.pdf; if left out, all of the study",
    )
    parser.add_argument(
        "--rate",
        type=float,
        metavar="R",
        help="multiply-adds a second of the machine that is planned for, as 1e13; if left out, "
        "networks are timed on this one",
    )


def run(arguments: Namespace) -> None:
    """Print the plan of every study that has jobs to run."""
    from vitscope.planning import costs_of_study
    from vitscope.planning.costs_of_job import COUNTED, say_what_latents_cost
    from vitscope.studies.loading import find_studies

    if arguments.rate is not None and not 0 < arguments.rate < inf:
        raise VitscopeError(f"--rate: found {arguments.rate}, allowed: a number above 0, as 1e13.")
    workflow.refuse_without_snakemake()
    asked = workflow.asked_for(arguments.study)
    studies = find_studies(asked.settings, "config/config.yaml")
    planned: dict[str, list[costs_of_study.Planned]] = {}
    for job in list_planned_jobs(asked, *(arguments.targets or asked.targets)):
        planned.setdefault(job.study, []).append(job)
    if not planned:
        print("Nothing to be done.")
    # Time networks on one thread, as jobs run; libraries read this when they are imported.
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    rate = (
        partial(costs_of_study.time_by_rate, arguments.rate)
        if arguments.rate
        else costs_of_study.time_pass
    )
    for name, of_study in planned.items():
        study = studies[name]
        kinds = costs_of_study.planned_costs_by_kind(
            costs_of_study.costs_of_planned_jobs(
                study, of_study, costs_of_study.seconds_of_earlier_run, rate
            )
        )
        latents = say_what_latents_cost(study, studies.keep_latents_gb, COUNTED)
        lacking = costs_of_study.say_what_planned_jobs_lack(study, of_study)
        print(plan_as_text(study, kinds, [latents, *lacking]))


def plan_as_text(study: "Study", kinds: "list[Cost]", remarks: "Iterable[str]") -> str:
    """Return the plan as a table for a terminal, followed by sums and remarks."""
    from vitscope.planning.costs_of_study import sum_of_planned_costs

    total = replace(
        sum_of_planned_costs("all", kinds), source="one after another, on one core each"
    )
    lines = [
        f"Plan of {study.name}: {study.title}",
        f"{'job':<35}{'jobs':>7}{'passes':>14}{'GB':>11}{'hours':>10}{'MB':>9}{'minutes':>8}"
        f"  hours from",
        *map(_format_planned_cost, kinds),
        _format_planned_cost(total),
        "MB and minutes are the most that a job asks a cluster for.",
        *remarks,
    ]
    if any("unknown" in row.source for row in kinds):
        lines.append("Hours of what is unknown are not in the sum.")
    if any(row.job == "decide_step" for row in kinds):
        lines.append("A build-up is decided step by step: what it has later is not in the sum.")
    return "\n".join(lines)


def _format_planned_cost(row: "Cost") -> str:
    return (
        f"{row.job:<35}{row.jobs:>7,}{row.passes:>14,}{(row.bytes or 0) / 1e9:>11.3f}"
        f"{(row.seconds or 0) / 3600:>10.3f}{row.megabytes or '':>9}{row.minutes or '':>8}"
        f"  {row.source}"
    )


def list_planned_jobs(asked: Asked, *targets: str) -> "list[Planned]":
    """Return the jobs that would run: jobs of a dry run whose outputs a summary calls pending.

    The dry run also notes finished jobs, since it checks whether anything about them has changed.
    """
    with TemporaryDirectory(prefix="vitscope-") as folder:
        notes = Path(folder) / "jobs"
        notes.touch()
        planning = {**os.environ, "VITSCOPE_PLAN": str(notes)}
        workflow.output_of_snakemake(asked, "-n", *targets, env=planning)
        noted = notes.read_text(encoding="utf-8").splitlines()
        summary = workflow.output_of_snakemake(asked, "--detailed-summary", *targets, env=planning)
    lines = csv.DictReader(summary.splitlines(), delimiter="\t")
    pending = {line["output_file"] for line in lines if line["plan"] == "update pending"}
    found = {output: job for output, *job in map(json.loads, noted) if output in pending}
    return [_planned_job_of_snakemake(asked, Path(output), *job) for output, job in found.items()]


def _planned_job_of_snakemake(
    asked: Asked, output: Path, job: str, study: str, names: "Names"
) -> "Planned":
    """Return a planned job; the path of its record mirrors the path of its first output."""
    from vitscope.planning.costs_of_study import Planned

    records, figures = Path(asked.folders["benchmarks"]), Path(asked.folders["figures"])
    if output.is_relative_to(figures):
        mirrored = Path("figures", output.relative_to(figures))
    else:
        mirrored = output.relative_to(asked.folders["results"])
    # A file in a single format has a record for each format.
    suffix = f"{output.suffix}.tsv" if "format" in names else ".tsv"
    return Planned(job, study, names, records / mirrored.with_suffix(suffix))
