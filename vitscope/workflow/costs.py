"""What a job costs: memory and time, from what its network computes and how often it does.

A measure says how many passes it makes of how many images; the block table says what a pass takes.
Plans and requests to a cluster ask here, and nowhere else.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.measures.measure import Work, passes
from vitscope.settings.keys import Dataset, Video
from vitscope.settings.study import Study
from vitscope.workflow import params

if TYPE_CHECKING:
    import pandas as pd

# Megabytes. On a node, Snakemake runs three times beside the script; and what a script needs for
# itself, without torch or with it.
ON_A_NODE = 600
WITHOUT_TORCH = 300
WITH_TORCH = 520

# Copies of the weights in memory: of the file, of the network, and those made between the two.
COPIES_OF_WEIGHTS = 4
# Bytes of memory for an image; docs/cluster.md has what was measured. For each byte at the peak of
# a pass: allocators keep what was used before.
PEAKS_OF_PASS = 2.0
# For each byte that the network computes in a pass: what lesions keep of it, what the pass back to
# the gradient needs, and what the two passes back of a product with the Hessian need.
SHARE_KEPT_FOR_LESIONS = 0.1
SHARE_OF_GRADIENT = 1.5
SHARE_OF_PRODUCT = 5.0

# Multiply-adds of a core in a second, in float32: of the machine in docs/scale.md.
OPERATIONS_PER_SECOND = 30e9
# The work of a job may take so many times as long as on that machine.
SAFETY = 2.5
# What a job may take besides: to wait for files, to start, to read.
LEAST_MINUTES = 15
# Seconds that a job takes beside its work, with torch or without.
START_WITH_TORCH, START = 2.5, 0.5
# Training goes forward and backward.
PASSES_OF_TRAINING = 3
# Seconds for a million pixels written: by glass_blur at 224 pixels, the slowest corruption;
# by cutting photographs of 3 million pixels to 224x224, where those of ImageNet take a tenth; by
# RandAugment at 32 pixels.
SECONDS_OF_CORRUPTION = 0.6
SECONDS_OF_BUILDING = 0.6
SECONDS_OF_AUGMENTING = 0.11
# Seconds for a frame of a video beside the pass: to draw and write 13 panels of 224 pixels.
SECONDS_OF_FRAME = 0.2
# Where neither the study nor a file tells how many images a source has: those of ImageNet.
UNCOUNTED_IMAGES = 50_000
# Frames of a video, where the study does not tell how many are shown: of a minute, or of two.
UNCOUNTED_FRAMES = 2000
# Bytes of a value of latents.
VALUE_BYTES = {"float32": 4, "bfloat16": 2}

AUGMENTS = ("augment_images", "augment_alike")
BUILDS_IMAGES = ("build_split", "corrupt_images", *AUGMENTS)
EXTRACTS = ("extract_latents", "extract_kept_latents")
MEASURES_MODEL = ("measure_model", "measure_model_part", "measure_loss")
DRAWS_VIDEO = ("draw_video", "draw_default_video")
TRAINS = ("train_model", "train_step")
RUNS_NETWORK = (*EXTRACTS, *MEASURES_MODEL, *DRAWS_VIDEO, *TRAINS, "predict", "measure_step")


@dataclass(frozen=True)
class Network:
    """What a network takes for one image: multiply-adds, and bytes of what it computes.

    `activations` are the bytes of all that it computes, `peak` those that are needed at once,
    `weights` those of its parameters, and `values` the numbers in its latents.
    """

    operations: int
    activations: int
    peak: int
    weights: int
    cut_points: int
    values: int


@dataclass(frozen=True)
class Job:
    """A job: its rule and its wildcards; and, where it is known, its network and its images."""

    rule: str
    study: Study
    names: Mapping[str, str]
    network: Network | None = None
    images: int | None = None


def network_of(blocks: "pd.DataFrame", metadata: Mapping[str, str]) -> Network:
    """Return what a block table says of a network."""
    from vitscope.networks.finding.block_table import head_of

    head = head_of(metadata)
    values = blocks["channels"] * blocks["height"] * blocks["width"]
    return Network(
        operations=int(blocks["operations"].sum()) + head.operations,
        activations=int(blocks["activations"].sum()) + head.activations,
        peak=max(int(blocks["peak"].max()), head.peak),
        weights=4 * (int(blocks["parameters"].sum()) + head.parameters),
        cut_points=len(blocks),
        values=int(values.sum()),
    )


@cache
def _read_network(blocks: str, written: int) -> Network:
    """Return the network of a block table as it was written at that time."""
    # Imported here: a run that asks for no network needs no pandas, which takes long to import.
    from vitscope.files.tables import read_metadata
    from vitscope.networks.finding.block_table import BLOCKS

    return network_of(BLOCKS.read(blocks), read_metadata(blocks))


@cache
def _counted(name: str, settings: str) -> Network:
    # Imported here: plans of figures that need no network take no torch.
    from vitscope.networks.building.empty import empty_network
    from vitscope.networks.finding.blocks import list_blocks

    entry = json.loads(settings)
    blocks = list_blocks(name, empty_network(entry["network"]), entry["network"], entry["points"])
    return network_of(blocks.table, blocks.metadata())


def counted(study: Study, model: str) -> Network:
    """Return what a network takes for one image, counted without weights."""
    entry = {"network": study.network(model), "points": study.models[model].points}
    return _counted(model, json.dumps(entry, sort_keys=True))


def of_baseline(job: Job) -> Job:
    """Return a job of a build-up as one of its baseline: what it tries costs about as much."""
    baseline = job.study.buildups[job.names["buildup"]].baseline
    return replace(job, names={**job.names, "model": baseline})


def informed(job: Job, inputs: Mapping[str, Any]) -> Job:
    """Return a job with what its input files tell: of its network, and of how many images."""
    if "blocks" in inputs:
        path = str(inputs["blocks"])
        job = replace(job, network=_read_network(path, Path(path).stat().st_mtime_ns))
    if "buildup" in job.names:
        job = of_baseline(job)
    if job.rule in (*TRAINS, "measure_step"):
        # Of one that is not trained yet, there is no block table; some networks have no cut points.
        with suppress(VitscopeError):
            job = replace(job, network=counted(job.study, job.names["model"]))
    images = inputs.get("train") or inputs.get("images")
    if isinstance(images, str):
        # A byte for every channel of every pixel, and little besides.
        data = dataset(job)
        there = Path(images).stat().st_size // (data.channels * data.image_size**2)
        job = replace(job, images=there)
    return job


def dataset(job: Job) -> Dataset:
    """Return the data set that the images of a job are of."""
    if "model" in job.names:
        return job.study.dataset_of(job.names["model"])
    return job.study.data[job.names["dataset"]]


def shard_images(job: Job) -> int:
    """Return how many images the shard of a job has."""
    size = job.study.analysis.shard_size
    return min(size, job.study.images(job.names["model"]) - int(job.names["part"]) * size)


def work(job: Job) -> Work | None:
    """Return the passes that a job makes, or None if it makes none, or nobody knows yet."""
    study, names, batch = job.study, job.names, job.study.analysis.batch_size
    if job.rule in EXTRACTS:
        return Work(shard_images(job), batch)
    if job.rule == "predict":
        wanted = params.classified(study, names["split"])["wanted"]
        return passes(1, wanted, job.images, batch)
    if job.rule == "measure_step":
        return passes(1, None, job.images, batch)
    if job.rule in TRAINS:
        of_steps = job.rule == "train_step"
        recipe = (
            study.recipe_of_steps(names["buildup"]) if of_steps else study.recipe(names["model"])
        )
        views = recipe.epochs * PASSES_OF_TRAINING
        return passes(views, recipe.images, job.images, recipe.batch_size, "gradient")
    if job.rule in DRAWS_VIDEO:
        return Work(_frames(study.videos[names["video"]]), 1, most=True)
    if job.rule in MEASURES_MODEL:
        measure, part = registry.declared(names["measure"]), int(names.get("part", 0))
        cut_points = job.network.cut_points if job.network else 0
        return measure.work(study, names["model"], part, job.images, cut_points)
    return None


def _frames(video: Video) -> int:
    """Return how many frames a video has at most, or where nobody knows, as one often has."""
    if "generated" in video.source:
        # Imported here, as NumPy comes with it.
        from vitscope.video.generated import FRAMES

        return min(video.frames or FRAMES, FRAMES)
    return video.frames or UNCOUNTED_FRAMES


def megapixels(job: Job) -> float:
    """Return how many million pixels a job makes that writes images."""
    study, there = job.study, job.images
    if job.rule == "build_split":
        there = study.data[job.names["dataset"]].splits[job.names["split"]].images or there
    elif job.rule == "corrupt_images":
        settings = params.corrupted(study)
        images = [count for count in (settings["images"], there) if count is not None]
        there = min(images, default=UNCOUNTED_IMAGES) * len(settings["severities"])
    elif job.rule in AUGMENTS:
        drawn = params.drawing if job.rule == "augment_images" else params.drawing_alike
        there = drawn(study)["images"]
    return (there or UNCOUNTED_IMAGES) * dataset(job).image_size ** 2 / 1e6


def _seconds_of_images(job: Job) -> float:
    rates = {"build_split": SECONDS_OF_BUILDING, "corrupt_images": SECONDS_OF_CORRUPTION}
    return megapixels(job) * rates.get(job.rule, SECONDS_OF_AUGMENTING)


def latents_bytes(job: Job) -> int:
    """Return the bytes of the latents that a job writes or reads."""
    if job.network is None:
        raise ValueError(f"{job.rule} needs the block table")
    dtype = job.study.analysis.latents_dtype
    return job.network.values * shard_images(job) * VALUE_BYTES[dtype]


def latents_megabytes(job: Job) -> int:
    """Return the megabytes of the latents that a job writes or reads."""
    return ceil(latents_bytes(job) / 1e6)


def file_megabytes(path: Path | str) -> int:
    """Return the size of a file; 0 if it is not there."""
    try:
        return ceil(Path(path).stat().st_size / 1e6)
    except FileNotFoundError:
        return 0


def seconds(job: Job, per_pass: float | None = None) -> float | None:
    """Return the seconds that a job takes, its start with them; None if nobody knows yet.

    `per_pass` are those of one image through the network, where they were measured.
    """
    if job.rule in BUILDS_IMAGES:
        return START + _seconds_of_images(job)
    if job.rule == "measure_latents":
        rate = registry.declared(job.names["measure"]).seconds_per_gb
        return START + (rate * latents_bytes(job) / 1e9 if job.network else 0)
    doing = work(job)
    if doing is None:
        return None if runs_network(job) else START
    if per_pass is None and job.network is None:
        return None
    if per_pass is None and job.network is not None:
        per_pass = job.network.operations / OPERATIONS_PER_SECOND
    beside = SECONDS_OF_FRAME if job.rule in DRAWS_VIDEO else 0
    return START_WITH_TORCH + doing.passes * ((per_pass or 0) + beside)


def runs_network(job: Job) -> bool:
    """Tell whether a job runs a network."""
    return job.rule in RUNS_NETWORK


def minutes(job: Job) -> int:
    """Return the minutes that a job asks a cluster for."""
    return LEAST_MINUTES + ceil(SAFETY * (seconds(job) or 0) / 60)


def megabytes(job: Job) -> int:
    """Return the memory that a job asks a cluster for."""
    doing = work(job)
    # The process that augments counts what it shares with the one that trains.
    least = ON_A_NODE + (WITH_TORCH if job.rule in TRAINS else 0)
    if doing is None or job.network is None:
        torch = runs_network(job) or job.rule in AUGMENTS
        return least + (WITH_TORCH if torch else WITHOUT_TORCH)
    kept = {
        "pass": 0.0,
        "units": SHARE_KEPT_FOR_LESIONS,
        "gradient": SHARE_OF_GRADIENT,
        "product": SHARE_OF_PRODUCT,
    }[doing.keeps]
    of_image = PEAKS_OF_PASS * job.network.peak + kept * job.network.activations
    held = (COPIES_OF_WEIGHTS + doing.vectors) * job.network.weights + doing.batch * of_image
    return ceil(least + WITH_TORCH + held / 1e6)
