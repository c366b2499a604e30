"""What a study will cost before it runs: forward passes, bytes and seconds of every job.

Seconds are those of an earlier run, where they are known. Otherwise they are a start, and forward
passes and bytes at measured or documented rates.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from vitscope.settings.study import Study
from vitscope.workflow.sizes import latents_bytes

if TYPE_CHECKING:
    import pandas as pd

# Seconds that a job takes beside its work, with torch or without.
START_WITH_TORCH, START = 2.5, 0.5
# Seconds per GB of latents that a measurement reads, on one core, its start among them: those of
# docs/scale.md for shards of 1.26 GB.
SECONDS_PER_GB = {
    "measure_variance": 0.4,
    "measure_diagonal": 0.6,
    "measure_spectrum": 1.3,
    "measure_cka": 0.7,
}
EXTRACTING = ("extract_latents", "extract_kept_latents")
# Training goes forward and backward.
PASSES_PER_STEP = 3
# A network is timed on few images first, and on a whole batch if those take less than so long.
FEW_IMAGES, SHORT_SECONDS = 4, 0.5


@dataclass(frozen=True)
class Job:
    """A job: its rule, and its outputs without the folder that all outputs lie in."""

    rule: str
    outputs: tuple[Path, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parts of its first output below the study, without suffix."""
        return self.outputs[0].with_suffix("").parts[1:]

    @property
    def model(self) -> str:
        """Return its model, where the path names one."""
        return self.names[1] if len(self.names) > 1 else ""


def _images(study: Study, job: Job, split: str, wanted: int | None) -> int | None:
    there = study.dataset(study.model(job.model)["data"])["splits"][split]["images"]
    known = [number for number in (wanted, there) if number is not None]
    return min(known) if known else None


def shard_images(study: Study, job: Job) -> int:
    """Return how many images the shard of a job has."""
    size = int(study.settings["analysis"]["shard_size"])
    return min(size, study.images(job.model) - int(job.names[-1]) * size)


def _of_prediction(study: Study, job: Job) -> int | None:
    analysis, split = study.settings["analysis"], job.names[-1]
    same = split == analysis["split"]
    section = "classification" if same else "shape_texture"
    return _images(study, job, split, analysis[section]["images"])


def _of_views(
    section: str, count: Callable[[Study, Job], int]
) -> Callable[[Study, Job], int | None]:
    """Count passes of measurements that classify the same images in several views."""

    def passes(study: Study, job: Job) -> int | None:
        analysis = study.settings["analysis"]
        images = _images(study, job, analysis["split"], analysis[section]["images"])
        return None if images is None else images * count(study, job)

    return passes


def _views_of_noise(study: Study, _: Job) -> int:
    noise = study.settings["analysis"]["frequency_noise"]
    return 1 + len(noise["frequencies"]) * int(noise["seeds"])


def _views_of_robustness(study: Study, job: Job) -> int:
    robustness = study.settings["analysis"]["robustness"]
    size, part = int(robustness["corruptions_per_job"]), int(job.names[-1])
    corruptions = robustness["corruptions"][part * size : (part + 1) * size]
    return len(corruptions) * len(robustness["severities"]) + (part == 0)


def _views_of_lesions(study: Study, job: Job) -> int:
    branches = [point.branch for point in _network(study, job.model).cut_points]
    return 1 + sum(branch is not None for branch in branches)


def _of_landscape(study: Study, job: Job) -> int:
    analysis = study.settings["analysis"]
    points, size = (int(analysis["landscape"][key]) for key in ("points", "rows_per_job"))
    first = int(job.names[-1]) * size
    return (min(first + size, points) - first) * points * int(analysis["augmented"]["images"])


def _of_training(study: Study, job: Job) -> int | None:
    recipe = study.recipe(job.model)
    images = _images(study, job, "train", recipe["images"])
    return None if images is None else images * int(recipe["epochs"]) * PASSES_PER_STEP


Count = Callable[[Study, Job], int | None]

# Rules that are not here make no forward passes, but for those of the Hessian: how many those make
# shows only when they have converged.
PASSES: dict[str, Count] = {
    **dict.fromkeys(EXTRACTING, shard_images),
    "list_blocks": lambda *_: 1,
    "predict": _of_prediction,
    "measure_lesions": _of_views("lesion", _views_of_lesions),
    "measure_frequency_noise": _of_views("frequency_noise", _views_of_noise),
    "measure_robustness": _of_views("robustness", _views_of_robustness),
    "measure_fit": lambda study, _: int(study.settings["analysis"]["fit"]["images"]),
    "measure_landscape": _of_landscape,
    "train_model": _of_training,
}
UNKNOWN = ("measure_hessian", "measure_hessian_density")


@dataclass(frozen=True)
class _Network:
    """What is known of a network without its weights."""

    cut_points: list[Any]
    blocks: "pd.DataFrame"


@cache
def _built(name: str, family: str, arch: str, classes: int, size: int) -> _Network:
    # Imported here: plans of figures that need no network take no torch.
    from vitscope.networks.blocks import block_table
    from vitscope.networks.empty import build_empty
    from vitscope.networks.family import find_family

    network = build_empty(family, json.loads(arch), classes, size).eval()
    points = find_family(family).cut_points(network)
    return _Network(points, block_table(name, network, points, size))


def _network(study: Study, model: str) -> _Network:
    entry = study.model(model)
    data = study.dataset(entry["data"])
    arch = json.dumps(entry["arch"], sort_keys=True)
    return _built(model, entry["family"], arch, data["classes"], data["image_size"])


def written(study: Study, job: Job) -> int | None:
    """Return the bytes that a job writes where they are many: latents and images."""
    if job.rule in EXTRACTING:
        blocks = _network(study, job.model).blocks
        dtype = study.settings["analysis"]["latents_dtype"]
        return latents_bytes(blocks, shard_images(study, job), dtype)
    if job.rule == "build_split":
        data = study.dataset(job.names[1])
        images = data["splits"][job.names[2]]["images"]
        return None if images is None else images * 3 * data["image_size"] ** 2
    return None


def calibrated(study: Study, model: str) -> float:
    """Return the seconds that one image takes through a network, with any weights, on one core."""
    import torch

    from vitscope.networks.family import find_family

    entry = study.model(model)
    data = study.dataset(entry["data"])
    build = find_family(entry["family"]).build
    network = build(entry["arch"], data["classes"], data["image_size"]).eval()

    def seconds(count: int) -> float:
        images = torch.zeros(count, 3, data["image_size"], data["image_size"])
        start = perf_counter()
        network(images)
        return perf_counter() - start

    with torch.inference_mode():
        count, taken = FEW_IMAGES, min(seconds(FEW_IMAGES) for _ in range(2))
        if taken < SHORT_SECONDS:
            count = int(study.settings["analysis"]["batch_size"])
            taken = min(seconds(count) for _ in range(2))
    return taken / count


@dataclass(frozen=True)
class Cost:
    """What a job costs, and where its seconds come from; None where that is not known before."""

    rule: str
    passes: int | None
    bytes: int | None
    seconds: float | None
    source: str


def costs(
    study: Study,
    jobs: Iterable[Job],
    earlier: Callable[[Job], float | None],
    rate: Callable[[Study, str], float] = calibrated,
) -> list[Cost]:
    """Return what every job costs.

    `earlier` gives the seconds that a job took before, if it did; `rate` those per image of a
    network.
    """
    rate_of = cache(lambda model: rate(study, model))

    def cost(job: Job) -> Cost:
        passes = PASSES[job.rule](study, job) if job.rule in PASSES else None
        seconds, source = earlier(job), "earlier runs"
        if seconds is None and passes:
            seconds, source = START_WITH_TORCH + passes * rate_of(job.model), "calibration"
        elif seconds is None and job.rule in UNKNOWN:
            source = "unknown"
        elif seconds is None:
            seconds, source = max(START, _reading(study, job)), "defaults"
        return Cost(job.rule, passes, written(study, job), seconds, source)

    return [cost(job) for job in jobs]


def _reading(study: Study, job: Job) -> float:
    """Return the seconds of a job that reads latents."""
    if job.rule not in SECONDS_PER_GB:
        return 0.0
    blocks = _network(study, job.model).blocks
    dtype = study.settings["analysis"]["latents_dtype"]
    size = latents_bytes(blocks, shard_images(study, job), dtype)
    return size / 1e9 * SECONDS_PER_GB[job.rule]


@dataclass(frozen=True)
class Sum:
    """What the jobs of a rule cost together; what is unknown of a job is not in it."""

    rule: str
    jobs: int
    passes: int
    bytes: int
    seconds: float
    sources: tuple[str, ...]


def by_rule(costs: Iterable[Cost]) -> list[Sum]:
    """Sum the costs of the jobs of each rule, the dearest first."""
    rules: dict[str, list[Cost]] = {}
    for cost in costs:
        rules.setdefault(cost.rule, []).append(cost)
    sums = [_sum(rule, of_rule) for rule, of_rule in rules.items()]
    return sorted(sums, key=lambda row: -row.seconds)


def _sum(rule: str, costs: list[Cost]) -> Sum:
    return Sum(
        rule,
        len(costs),
        sum(cost.passes or 0 for cost in costs),
        sum(cost.bytes or 0 for cost in costs),
        sum(cost.seconds or 0 for cost in costs),
        tuple(sorted({cost.source for cost in costs})),
    )


def as_text(study: Study, rules: list[Sum], most_gb: float | None) -> str:
    """Return the plan as a table for a terminal, its sums last."""
    costs = [Cost("all", row.passes, row.bytes, row.seconds, "") for row in rules]
    total = replace(_sum("all", costs), jobs=sum(row.jobs for row in rules))
    at_once = "as many as there are jobs" if most_gb is None else f"at most {most_gb:g} GB"
    lines = [
        f"Plan of {study.name}: {study.settings['title']}",
        f"{'rule':<26}{'jobs':>7}{'passes':>15}{'GB':>11}{'hours':>10}  hours from",
        *map(_line, rules),
        f"{_line(total)}one after another, on one core each",
        f"Latents are deleted when they are measured; at once there are {at_once}.",
    ]
    if any("unknown" in row.sources for row in rules):
        lines.append("Hours of what is unknown are not in the sum.")
    return "\n".join(lines)


def _line(row: Sum) -> str:
    return (
        f"{row.rule:<26}{row.jobs:>7,}{row.passes:>15,}{row.bytes / 1e9:>11.3f}"
        f"{row.seconds / 3600:>10.3f}  {', '.join(row.sources)}"
    )
