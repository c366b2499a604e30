"""The expected cost of a study: forward passes, bytes and seconds of every job."""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter

from vitscope.data.opening import count_images, local_path, local_path_exists
from vitscope.image_size import height_and_width
from vitscope.jobs.job import Job, Names, Request, Takes, find_job
from vitscope.planning import costs_of_job
from vitscope.settings.study import Study

# A network is timed on this many images first.
FEW_IMAGES = 4
# If these images take fewer seconds than this, a whole batch is timed.
SHORT_SECONDS = 0.5


@dataclass(frozen=True)
class Planned:
    """A job that would run; `record` is the path where its run records its time."""

    job: str
    study: str
    names: Names
    record: Path


def _request_of_planned_job(job: Job, study: Study, names: Names) -> Request:
    request = costs_of_job.request_of(study, names)
    # A pair of models has no images of its own.
    if "dataset" not in names and request.names.get("model") not in study.models:
        return request
    split = names.get("split") or job.takes_of(request).split or study.analysis.split
    there = request.dataset.splits.get(split)
    if there is None:
        return request
    known = count_images(request.dataset.source, split) if there.images is None else there.images
    return replace(request, images=known)


def time_pass(study: Study, model: str) -> float:
    """Time one image through a network with random weights, on one core or an allowed GPU."""
    import torch

    from vitscope.networks.building.networks import build_family_network
    from vitscope.networks.running.device import pick_device

    entry = study.network(model)
    size, channels = entry["image_size"], len(entry["mean"])
    device = pick_device("cpu" if study.device == "cpu" else "auto")
    network = build_family_network(entry).eval().to(device)

    def time_batch(count: int) -> float:
        images = torch.zeros(count, channels, *height_and_width(size))
        start = perf_counter()
        network(images.to(device))
        if device.type == "cuda":
            torch.cuda.synchronize()
        return perf_counter() - start

    with torch.inference_mode():
        for count in (FEW_IMAGES, study.analysis.batch_size):
            taken = min(time_batch(count) for _ in range(2))
            if taken >= SHORT_SECONDS:
                break
    return taken / count


def time_by_rate(rate: float, study: Study, model: str) -> float:
    """Return the seconds that one image takes at `rate` multiply-adds a second."""
    return costs_of_job.count_network(study, model).operations / rate


@dataclass(frozen=True)
class Cost:
    """The cost of jobs, None if unknown; jobs on the login node ask for 0 MB and 0 minutes."""

    job: str
    passes: int | None
    bytes: int | None
    seconds: float | None
    source: str
    jobs: int = 1
    megabytes: int = 0
    minutes: int = 0


def costs_of_planned_jobs(
    study: Study,
    jobs: Iterable[Planned],
    earlier: Callable[[Planned], float | None],
    rate: Callable[[Study, str], float],
) -> list[Cost]:
    """Return the cost of each job.

    `earlier` returns the seconds of a job in an earlier run, or None. If it is None, the seconds
    follow from `rate`, which returns the seconds that one image takes in a model.
    """
    rate_of = cache(partial(rate, study))
    return [_cost_of_planned_job(study, planned, earlier(planned), rate_of) for planned in jobs]


def _cost_of_planned_job(
    study: Study, planned: Planned, known: float | None, rate: Callable[[str], float]
) -> Cost:
    job = find_job(planned.job)
    request = _request_of_planned_job(job, study, planned.names)
    takes, model = job.takes_of(request), request.names.get("model")
    # The size of latents depends on the network, too.
    if model in study.models and (takes.work or takes.seconds or takes.writes):
        request = replace(request, network=costs_of_job.count_network(study, model))
    doing = costs_of_job.work(job, request)
    found, source = known, "earlier runs"
    if known is None and doing is None:
        found = costs_of_job.seconds(job, request)
        source = "unknown" if found is None else "defaults"
    elif known is None and doing is not None:
        found = costs_of_job.seconds(job, request, per_pass=rate(request.names["model"]))
        source = "calibration, at most" if doing.most else "calibration"
    # A job without cost runs where Snakemake does, and asks for no resources.
    asks = takes != Takes()
    return Cost(
        # Name the measure, since some take hours and others seconds.
        f"{planned.job} {planned.names.get('measure', '')}".strip(),
        None if doing is None else round(doing.passes),
        takes.writes(request) if takes.writes else None,
        found,
        source,
        megabytes=costs_of_job.megabytes(job, request) if asks else 0,
        minutes=costs_of_job.minutes(job, request) if asks else 0,
    )


def planned_costs_by_kind(costs: Iterable[Cost]) -> list[Cost]:
    """Sum the costs of jobs by kind; sort the kinds by time, the longest first."""
    kinds: dict[str, list[Cost]] = {}
    for cost in costs:
        kinds.setdefault(cost.job, []).append(cost)
    sums = [sum_of_planned_costs(kind, of_kind) for kind, of_kind in kinds.items()]
    return sorted(sums, key=lambda row: -(row.seconds or 0))


def sum_of_planned_costs(kind: str, costs: list[Cost]) -> Cost:
    return Cost(
        kind,
        sum(cost.passes or 0 for cost in costs),
        sum(cost.bytes or 0 for cost in costs),
        sum(cost.seconds or 0 for cost in costs),
        ", ".join(sorted({cost.source for cost in costs})),
        sum(cost.jobs for cost in costs),
        max((cost.megabytes for cost in costs), default=0),
        max((cost.minutes for cost in costs), default=0),
    )


def say_what_planned_jobs_lack(study: Study, jobs: Iterable[Planned]) -> Iterator[str]:
    """Yield a sentence for each split whose images do not exist yet."""
    for names in (each.names for each in jobs if each.job == "build_split"):
        source, split = study.data[names["dataset"]].source, names["split"]
        if not local_path_exists(source, split):
            path = local_path(source, split)
            yield f"There are no images yet of data.{names['dataset']}: {path} is not there."


def seconds_of_earlier_run(job: "Planned") -> float | None:
    """Return the seconds of a job in an earlier run, else the mean of the records in its folder."""
    record = job.record
    found = [record] if record.is_file() else sorted(record.parent.glob("*.tsv"))
    texts = [file.read_text(encoding="utf-8").splitlines() for file in found]
    seconds = [float(next(csv.DictReader(lines, delimiter="\t"))["s"]) for lines in texts]
    return sum(seconds) / len(seconds) if seconds else None
