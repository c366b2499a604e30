"""What a study will cost before it runs: forward passes, bytes and seconds of every job.

Seconds are those of an earlier run, where they are known. Otherwise costs.py says them, with the
speed of the network as it is measured here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from time import perf_counter

from vitscope.settings.study import Study
from vitscope.workflow import costs
from vitscope.workflow.costs import Job

# What the parts of the first output of a job name, below the folder of its study.
OUTPUT_NAMES = {
    "extract_latents": ("", "model", "part"),
    "extract_kept_latents": ("", "model", "part"),
    "predict": ("", "model", "split"),
    "measure_latents": ("measure", "model", "part"),
    "measure_predictions": ("measure", "model"),
    "measure_model": ("measure", "model"),
    "measure_model_part": ("measure", "model", "part"),
    "measure_loss": ("measure", "model", "snapshot", "part"),
    "measure_network": ("measure", "model"),
    "measure_weights": ("measure", "model"),
    "merge": ("measure", "model"),
    "merge_pair": ("measure", "pair"),
    "train_model": ("", "model"),
    "build_split": ("", "dataset", "split"),
    "corrupt_images": ("", "dataset", "corruption"),
    "augment_images": ("", "model"),
    "augment_alike": ("", "", "model"),
    "list_blocks": ("", "model"),
    "draw_video": ("video",),
    "draw_default_video": ("video",),
    "decide_step": ("", "buildup", "weights"),
    "train_step": ("", "buildup"),
    "measure_step": ("", "buildup", "weights"),
}
# A network is timed on few images first, and on a whole batch if those take less than so long.
FEW_IMAGES, SHORT_SECONDS = 4, 0.5


@dataclass(frozen=True)
class Planned:
    """A job that would run: its rule, and its outputs without the folder that all lie in."""

    rule: str
    outputs: tuple[Path, ...]

    def job(self, study: Study) -> Job:
        """Return it as the cost model takes it, with what the study tells of its images."""
        # A video of the default study lies in no folder of that.
        parts = self.outputs[0].with_suffix("").parts
        names = dict(zip(OUTPUT_NAMES.get(self.rule, ()), parts[1:] or parts, strict=False))
        if "video" in names:
            names["model"] = study.videos[names["video"]].model
        job = Job(self.rule, study, names)
        if "buildup" in names:
            job = costs.of_baseline(job)
        return replace(job, images=_declared_images(job))


def _declared_images(job: Job) -> int | None:
    """Return how many images the study says that a split has."""
    names, study = job.names, job.study
    if "model" not in names:
        return None
    of_rule = {**dict.fromkeys(costs.TRAINS, "train"), "measure_step": "test"}
    split = names.get("split", of_rule.get(job.rule, study.analysis.split))
    there = study.dataset_of(names["model"]).splits.get(split)
    return there.images if there else None


def written(job: Job) -> int | None:
    """Return the bytes that a job writes where they are many: latents and images."""
    if job.rule in costs.EXTRACTS:
        return costs.latents_bytes(job)
    if job.rule == "build_split":
        data = job.study.data[job.names["dataset"]]
        images = data.splits[job.names["split"]].images
        return None if images is None else images * data.channels * data.image_size**2
    return None


def calibrated(study: Study, model: str) -> float:
    """Return the seconds that one image takes through a network, with any weights, on one core."""
    import torch

    from vitscope.networks.building.family import find_family

    entry = study.network(model)
    size, channels = entry["image_size"], len(entry["mean"])
    family = find_family(entry["family"])
    network = family.build(entry["arch"], entry["classes"], size, channels).eval()

    def seconds(count: int) -> float:
        images = torch.zeros(count, channels, size, size)
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
    """What a job costs, and where its seconds come from; None where that is not known before."""

    rule: str
    passes: int | None
    bytes: int | None
    seconds: float | None
    source: str


def costs_of(
    study: Study,
    jobs: Iterable[Planned],
    earlier: Callable[[Planned], float | None],
    rate: Callable[[Study, str], float] = calibrated,
) -> list[Cost]:
    """Return what every job costs.

    `earlier` gives the seconds that a job took before, if it did; `rate` those per image of a
    network.
    """
    rate_of = cache(partial(rate, study))
    return [_cost(study, planned, earlier, rate_of) for planned in jobs]


def _cost(
    study: Study,
    planned: Planned,
    earlier: Callable[[Planned], float | None],
    rate: Callable[[str], float],
) -> Cost:
    job = planned.job(study)
    if costs.runs_network(job) or job.rule == "measure_latents":
        job = replace(job, network=costs.counted(study, job.names["model"]))
    doing = costs.work(job)
    passes = None if doing is None else round(doing.passes)
    if (known := earlier(planned)) is not None:
        return Cost(job.rule, passes, written(job), known, "earlier runs")
    if doing is None:
        found = costs.seconds(job)
        return Cost(job.rule, None, written(job), found, "unknown" if found is None else "defaults")
    found = costs.seconds(job, per_pass=rate(job.names["model"]))
    source = "calibration, at most" if doing.most else "calibration"
    return Cost(job.rule, passes, written(job), found, source)


@dataclass(frozen=True)
class RuleCost:
    """What the jobs of a rule cost together; what is unknown of a job is not in it."""

    rule: str
    jobs: int
    passes: int
    bytes: int
    seconds: float
    sources: tuple[str, ...]


def by_rule(costs: Iterable[Cost]) -> list[RuleCost]:
    """Sum the costs of the jobs of each rule, the dearest first."""
    rules: dict[str, list[Cost]] = {}
    for cost in costs:
        rules.setdefault(cost.rule, []).append(cost)
    sums = [_total(rule, of_rule) for rule, of_rule in rules.items()]
    return sorted(sums, key=lambda row: -row.seconds)


def _total(rule: str, costs: list[Cost]) -> RuleCost:
    return RuleCost(
        rule,
        len(costs),
        sum(cost.passes or 0 for cost in costs),
        sum(cost.bytes or 0 for cost in costs),
        sum(cost.seconds or 0 for cost in costs),
        tuple(sorted({cost.source for cost in costs})),
    )


def as_text(study: Study, rules: list[RuleCost], most_gb: float | None) -> str:
    """Return the plan as a table for a terminal, its sums last."""
    costs = [Cost("all", row.passes, row.bytes, row.seconds, "") for row in rules]
    total = replace(_total("all", costs), jobs=sum(row.jobs for row in rules))
    at_once = "as many as there are jobs" if most_gb is None else f"at most {most_gb:g} GB"
    lines = [
        f"Plan of {study.name}: {study.title}",
        f"{'rule':<26}{'jobs':>7}{'passes':>15}{'GB':>11}{'hours':>10}  hours from",
        *map(_line, rules),
        f"{_line(total)}one after another, on one core each",
        f"Latents are deleted when they are measured; at once there are {at_once}.",
    ]
    if any("unknown" in row.sources for row in rules):
        lines.append("Hours of what is unknown are not in the sum.")
    if any(row.rule == "decide_step" for row in rules):
        lines.append("A build-up is decided step by step: what it has later is not in the sum.")
    return "\n".join(lines)


def _line(row: RuleCost) -> str:
    return (
        f"{row.rule:<26}{row.jobs:>7,}{row.passes:>15,}{row.bytes / 1e9:>11.3f}"
        f"{row.seconds / 3600:>10.3f}  {', '.join(row.sources)}"
    )
