"""What ImageNet's validation images cost through ViT-B, -L and -g, by the plan of bench/vits.yaml.

Nothing runs, and no GPU is needed. It prints the tables of docs/scale.md.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterable
from contextlib import chdir
from functools import partial
from pathlib import Path

from vitscope.commands.plan import list_planned_jobs
from vitscope.commands.workflow import asked_for
from vitscope.jobs.job import Takes, find_job
from vitscope.measures import registry
from vitscope.planning.costs_of_job import count_network
from vitscope.planning.costs_of_study import (
    Cost,
    Planned,
    costs_of_planned_jobs,
    planned_costs_by_kind,
    time_by_rate,
)
from vitscope.settings.study import Study
from vitscope.studies.loading import load_study

STUDY = Path(__file__).resolve().with_name("vits.yaml")
GPUS = 16
# Cores of a job of a shard: `cores` in profiles/slurm.
CORES = 2
# Hours of the largest network below which a kind of job is left out.
LEAST = 0.02
# What the jobs of each model cost, by their kinds.
Models = dict[str, dict[str, Cost]]


def plan() -> list[Planned]:
    """Return the jobs of the study, planned in a folder in which nothing was made."""
    asked = asked_for(str(STUDY))
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return list_planned_jobs(asked, *asked.targets)


def costs_of_model(study: Study, jobs: list[Planned], model: str, rate: float) -> dict[str, Cost]:
    """Return what the jobs of a model cost, and those that are of none, by their kinds."""
    chosen = [job for job in jobs if job.names.get("model", model) == model]
    found = costs_of_planned_jobs(study, chosen, lambda job: None, partial(time_by_rate, rate))
    return {row.job: row for row in planned_costs_by_kind(found)}


def runs_networks(cost: Cost) -> bool:
    """Tell whether jobs of a kind run a network, and so are on a GPU."""
    job, *measure = cost.job.split()
    if job == "measure":
        return registry.declared(*measure).need.runs
    takes = find_job(job).takes
    return isinstance(takes, Takes) and takes.work is not None


def is_of_a_network(kind: str) -> bool:
    """Tell whether jobs of a kind measure a model as it is, with images or without."""
    job, *measure = kind.split()
    return job == "measure" and registry.declared(*measure).needs in ("model", "network")


def hours(cost: Cost) -> tuple[float, float]:
    """Return the hours of jobs one after another, and on sixteen GPUs or the cores beside them."""
    one = (cost.seconds or 0) / 3600
    return one, one / min(cost.jobs, GPUS if runs_networks(cost) else GPUS * CORES)


def show_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of Markdown."""
    heads = [*heads]
    for cells in (heads, ["---"] * len(heads), *rows):
        print(f"| {' | '.join(cells)} |")
    print()


def show_networks(study: Study) -> None:
    """Print what decides the costs of each network."""
    rows = []
    for name in study.models:
        network, latents = count_network(study, name), 4 * count_network(study, name).values
        rows.append(
            [
                study.models[name].label,
                f"{network.weights / 4e6:.1f} M",
                f"{network.operations / 1e9:.2f}e9",
                str(network.cut_points),
                f"{latents / 1e6:.2f} MB",
                f"{study.images(name) * latents / 1e9:,.0f} GB",
            ]
        )
    heads = ("", "parameters", "multiply-adds", "cut points", "latents", "of all images")
    show_table(heads, rows)


def kinds_for(job: str) -> str:
    """Return the kinds of figures that jobs are for, by their kind and measure."""
    measures = [registry.declared(name) for name in registry.names()]
    name, _, measure = job.partition(" ")
    if name in ("measure_pass", "build_split"):
        return "all of feature maps" if name == "measure_pass" else "images"
    if name == "predict":
        chosen = [each for each in measures if "predictions" in each.inputs]
    elif name == "corrupt_images":
        chosen = [each for each in measures if "corrupted" in each.reads]
    else:
        chosen = [each for each in measures if measure in (each.name, each.parts_of)]
    return ", ".join(f"`{kind}`" for each in chosen for kind in each.figures)


def show_hours(models: Models, kinds: list[str], images: int) -> None:
    """Print the hours of some kinds of jobs; those that take the same are one row."""
    *_, largest = models.values()

    def each(kind: str, show: Callable[[Cost], str]) -> list[str]:
        return [show(rows[kind]) for rows in models.values()]

    def once(kind: str, show: Callable[[Cost], str]) -> str:
        return " / ".join(dict.fromkeys(each(kind, show)))

    alike: dict[tuple[str, ...], list[str]] = {}
    for kind in kinds:
        row = (
            f"{largest[kind].jobs:,}",
            once(kind, lambda row: f"{(row.passes or 0) / images:.3g}"),
            once(kind, lambda row: f"{(row.bytes or 0) / 1e9:,.0f}"),
            *each(kind, lambda row: "{:.2g}, {:.2g}".format(*hours(row))),
        )
        alike.setdefault(row, []).append(kinds_for(kind))
    shown = [[", ".join(named), *row] for row, named in alike.items()]
    show_table(("figures", "jobs", "passes", "GB", *models), [*shown, totals(models, kinds)])


def totals(models: Models, kinds: list[str]) -> list[str]:
    """Return the last row: on sixteen, the longest job may be what takes longest."""
    cells = []
    for rows in models.values():
        found = [hours(rows[kind]) for kind in kinds]
        one = sum(each for each, _ in found)
        there = GPUS if runs_networks(rows[kinds[0]]) else GPUS * CORES
        cells.append(f"{one:.3g}, {max(one / there, *(most for _, most in found)):.2g}")
    return ["all", "", "", "", *cells]


def show_requests(models: Models, kinds: list[str]) -> None:
    """Print what jobs ask a cluster for, by kind."""
    rows = [
        [kinds_for(kind)]
        + [
            f"{rows[kind].megabytes / 1e3:.0f} GB, {rows[kind].minutes / 60:.1f} h"
            for rows in models.values()
        ]
        for kind in kinds
    ]
    show_table(("figures", *models), rows)


def show_costs(study: Study, models: Models) -> None:
    """Print hours and requests of the jobs that run a network, and hours of the others."""
    *_, largest = models.values()
    kinds = [kind for kind, row in largest.items() if hours(row)[0] >= LEAST]
    on_gpus = [kind for kind in kinds if runs_networks(largest[kind])]
    show_hours(models, on_gpus, study.analysis.images)
    on_cores = [kind for kind in kinds if kind not in on_gpus]
    show_hours(models, on_cores, study.analysis.images)
    show_requests(models, on_gpus)
    quick = ", ".join(map(kinds_for, filter(is_of_a_network, largest)))
    told = ", ".join(map(kinds_for, kinds)).split(", ")
    print(f"Less than {LEAST} hours:", ", ".join(k for k in quick.split(", ") if k not in told))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1e13, help="multiply-adds a second of a GPU")
    rate, study = parser.parse_args().rate, load_study(STUDY)
    show_networks(study)
    jobs = plan()
    models = {
        entry.label: costs_of_model(study, jobs, name, rate) for name, entry in study.models.items()
    }
    show_costs(study, models)


if __name__ == "__main__":
    main()
