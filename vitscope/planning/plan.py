"""What a study will cost before it runs: forward passes, bytes and seconds of every job.

Seconds come from an earlier run, where there was one. Otherwise costs.py says them, with the
speed of the network as it is measured here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter

from vitscope.image_size import height_and_width
from vitscope.jobs.job import Job, Names, Request, find_job
from vitscope.planning import costs
from vitscope.settings.study import Study

# A network is timed on few images first, and on a whole batch if those take less than so long.
FEW_IMAGES, SHORT_SECONDS = 4, 0.5


@dataclass(frozen=True)
class Planned:
    """A job that would run: its kind, its study, its names, and where the record of a run lies."""

    job: str
    study: str
    names: Names
    record: Path


def _request(job: Job, study: Study, names: Names) -> Request:
    """Return what is known of a job before anything ran: how many images the study says."""
    request = costs.request_of(study, names)
    # A pair of models has no images of its own.
    if request.names.get("model") not in study.models:
        return request
    split = names.get("split") or job.takes.split or study.analysis.split
    there = study.dataset_of(request.names["model"]).splits.get(split)
    return replace(request, images=there.images if there else None)


def time_pass(study: Study, model: str) -> float:
    """Return the seconds that one image takes through a network, with any weights, on one core."""
    import torch

    from vitscope.networks.building.family import build_network

    entry = study.network(model)
    size, channels = entry["image_size"], len(entry["mean"])
    network = build_network(entry).eval()

    def seconds(count: int) -> float:
        images = torch.zeros(count, channels, *height_and_width(size))
        start = perf_counter()
        network(images)
        return perf_counter() - start

    with torch.inference_mode():
        count, taken = FEW_IMAGES, min(seconds(FEW_IMAGES) for _ in range(2))
        if taken < SHORT_SECONDS:
            count = study.analysis.batch_size
            taken = min(seconds(count) for _ in range(2))
    return taken / count


@dataclass(frozen=True)
class Cost:
    """What a job costs, or several, and where the seconds come from; None where it is unknown."""

    job: str
    passes: int | None
    bytes: int | None
    seconds: float | None
    source: str
    jobs: int = 1


def costs_of(
    study: Study,
    jobs: Iterable[Planned],
    earlier: Callable[[Planned], float | None],
    rate: Callable[[Study, str], float] = time_pass,
) -> list[Cost]:
    """Return what every job costs.

    `earlier` gives the seconds that a job took before, if it did; `rate` those per image of a
    network.
    """
    rate_of = cache(partial(rate, study))
    return [_cost(study, planned, earlier(planned), rate_of) for planned in jobs]


def _cost(
    study: Study, planned: Planned, known: float | None, rate: Callable[[str], float]
) -> Cost:
    job = find_job(planned.job)
    request = _request(job, study, planned.names)
    model = request.names.get("model")
    # What is written of latents depends on the network, too.
    if model and (job.takes.work or "part" in planned.names):
        request = replace(request, network=costs.count_network(study, model))
    doing = costs.work(job, request)
    passes = None if doing is None else round(doing.passes)
    written = job.takes.writes(request) if job.takes.writes else None
    if known is not None:
        return Cost(planned.job, passes, written, known, "earlier runs")
    if doing is None:
        found = costs.seconds(job, request)
        source = "unknown" if found is None else "defaults"
        return Cost(planned.job, None, written, found, source)
    found = costs.seconds(job, request, per_pass=rate(request.names["model"]))
    source = "calibration, at most" if doing.most else "calibration"
    return Cost(planned.job, passes, written, found, source)


def by_kind(costs: Iterable[Cost]) -> list[Cost]:
    """Sum the costs of the jobs of each kind, the dearest first."""
    kinds: dict[str, list[Cost]] = {}
    for cost in costs:
        kinds.setdefault(cost.job, []).append(cost)
    sums = [_total(kind, of_kind) for kind, of_kind in kinds.items()]
    return sorted(sums, key=lambda row: -(row.seconds or 0))


def _total(kind: str, costs: list[Cost]) -> Cost:
    """Sum costs; what is unknown of a job is not in the sum."""
    return Cost(
        kind,
        sum(cost.passes or 0 for cost in costs),
        sum(cost.bytes or 0 for cost in costs),
        sum(cost.seconds or 0 for cost in costs),
        ", ".join(sorted({cost.source for cost in costs})),
        sum(cost.jobs for cost in costs),
    )


def as_text(study: Study, kinds: list[Cost], latents: str) -> str:
    """Return the plan as a table for a terminal, its sums last, and what becomes of latents."""
    total = replace(_total("all", kinds), source="one after another, on one core each")
    lines = [
        f"Plan of {study.name}: {study.title}",
        f"{'job':<26}{'jobs':>7}{'passes':>15}{'GB':>11}{'hours':>10}  hours from",
        *map(_line, kinds),
        _line(total),
        latents,
    ]
    if any("unknown" in row.source for row in kinds):
        lines.append("Hours of what is unknown are not in the sum.")
    if any(row.job == "decide_step" for row in kinds):
        lines.append("A build-up is decided step by step: what it has later is not in the sum.")
    return "\n".join(lines)


def _line(row: Cost) -> str:
    return (
        f"{row.job:<26}{row.jobs:>7,}{row.passes:>15,}{(row.bytes or 0) / 1e9:>11.3f}"
        f"{(row.seconds or 0) / 3600:>10.3f}  {row.source}"
    )
