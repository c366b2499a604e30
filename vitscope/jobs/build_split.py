"""Prepare the images of one split as a file that every job maps into memory."""

from dataclasses import asdict
from pathlib import Path

from vitscope.data.opening import listing_digest, local_path
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values

# The settings of a data set that decide what is in the file of a split.
MADE_BY = (
    "source",
    "classes",
    "class_names",
    "class_index",
    "channels",
    "image_size",
    "resize",
    "interpolation",
)
# Seconds for a million pixels, cut from photographs of 3 million pixels to 224x224; images
# of ImageNet take a tenth.
SECONDS_PER_MEGAPIXEL = 0.6
# Where neither the study nor a file says how many images a source has: as many as ImageNet.
UNCOUNTED_IMAGES = 50_000


def _values(study: Study, names: Names) -> Values:
    dataset, split = names["dataset"], names["split"]
    data = study.data[dataset]
    path = local_path(data.source, split)
    return {
        "dataset": dataset,
        "split": split,
        "settings": {key: getattr(data, key) for key in MADE_BY}
        | {"splits": {split: asdict(data.splits[split])}},
        # The date of a folder does not say what is in it.
        "listing": None if path is None else listing_digest(path),
        "modules": [f"vitscope.data.sources.{data.source['kind']}"],
    }


def _images(request: Request) -> int | None:
    data = request.study.data[request.names["dataset"]]
    return data.splits[request.names["split"]].images or request.images


def _bytes(request: Request) -> int | None:
    split = request.dataset.splits[request.names["split"]]
    return None if split.images is None else split.images * request.dataset.bytes_of(split)


def _seconds(request: Request) -> float:
    if not request.dataset.splits[request.names["split"]].stored:
        return 0
    images = _images(request) or UNCOUNTED_IMAGES
    return images * request.dataset.pixels / 1e6 * SECONDS_PER_MEGAPIXEL


JOB = Job(values=_values, takes=Takes(seconds=_seconds, writes=_bytes))


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the file of the split."""
    from vitscope.data.building import build
    from vitscope.web.lockfile import confirm

    files, name, settings = [*map(Path, inputs["source"])], values["dataset"], values["settings"]
    if settings["source"]["kind"] == "url":
        confirm(settings["source"], files[0], Path(resources.lock), label=f"data.{name}")
    build(name, settings, values["split"], Path(outputs["images"]), *files)
