"""Jobs of data: download data sets, write one file per split, corrupt images."""

from dataclasses import asdict
from pathlib import Path

from vitscope.data.opening import declared, listing_digest, local_path
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.measures import registry


def _address_of_archive(study: Study, names: Names) -> Values:
    # Return only what identifies the download, so that users of a shared cache share the file.
    source = study.data[names["dataset"]].source
    return {"archive": declared(source["kind"]).archive, "source": source}


def fetch_archive_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.data.archives import download_official_archive

    archive = Path(outputs["archive"])
    download_official_archive(
        values["archive"], values["source"], archive, label=resources.label, say=resources.say
    )


FETCH_ARCHIVE = Job(run=fetch_archive_job, values=_address_of_archive)


def _address_of_file(study: Study, names: Names) -> Values:
    entry = study.videos[names["video"]] if "video" in names else study.data[names["dataset"]]
    return {key: entry.source[key] for key in ("url", "sha256") if key in entry.source}


def fetch_file_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Download the file and record its hash in the study's lock file."""
    from vitscope.web.lockfile import download_with_lock

    file, lock = Path(outputs["file"]), Path(resources.lock)
    download_with_lock(values, file, lock, label=resources.label, say=resources.say)


FETCH_FILE = Job(run=fetch_file_job, values=_address_of_file)


# Settings of a data set that decide the content of a split's file.
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
# Seconds to read images, for each million pixels after resizing. Measured on photographs of 3
# million pixels that are resized to 224x224; images of ImageNet take a tenth.
SECONDS_TO_READ = 0.6
# The number of images to assume for a split of unknown size, as in ImageNet's validation split.
UNCOUNTED_IMAGES = 50_000


def _values_of_split_job(study: Study, names: Names) -> Values:
    dataset, split = names["dataset"], names["split"]
    data = study.data[dataset]
    path = local_path(data.source, split)
    return {
        "dataset": dataset,
        "split": split,
        "settings": {key: getattr(data, key) for key in MADE_BY}
        | {"splits": {split: asdict(data.splits[split])}},
        # A folder's date does not show whether its content has changed.
        "listing": None if path is None else listing_digest(path),
        "modules": [f"vitscope.data.sources.{data.source['kind']}"],
    }


def _bytes_of_split(request: Request) -> int | None:
    split = request.dataset.splits[request.names["split"]]
    return None if split.images is None else split.images * request.dataset.bytes_of(split)


def _seconds_of_split(request: Request) -> float:
    split = request.dataset.splits[request.names["split"]]
    images = split.images or request.images or UNCOUNTED_IMAGES if split.stored else 0
    return images * request.dataset.pixels / 1e6 * SECONDS_TO_READ


def build_split_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.data.building import build_split_file
    from vitscope.web.lockfile import confirm_by_lock

    files, name, settings = [*map(Path, inputs["source"])], values["dataset"], values["settings"]
    if settings["source"]["kind"] == "url":
        confirm_by_lock(settings["source"], files[0], Path(resources.lock), label=f"data.{name}")
    build_split_file(name, settings, values["split"], Path(outputs["images"]), *files)


BUILD_SPLIT = Job(
    run=build_split_job,
    values=_values_of_split_job,
    takes=Takes(seconds=_seconds_of_split, writes=_bytes_of_split),
)


# Seconds to corrupt a million pixels with glass_blur, the slowest corruption, measured at 224x224.
SECONDS_TO_CORRUPT = 0.6


def corruptions_of(study: Study, names: Names) -> Values:
    """Return how many images to corrupt, and with which corruptions and severities."""
    (measure,) = (m for m in map(registry.declared, registry.names()) if "corrupted" in m.reads)
    return measure.corrupted(study, int(names["part"]))


def _count_corrupted_images(request: Request, uncounted: int | None = None) -> int | None:
    wanted = corruptions_of(request.study, request.names)
    known = [count for count in (wanted["images"], request.images) if count is not None]
    images = min(known, default=uncounted)
    return images and images * len(wanted["corruptions"]) * len(wanted["severities"])


def _seconds_to_corrupt(request: Request) -> float:
    images = _count_corrupted_images(request, UNCOUNTED_IMAGES) or 0
    return images * request.dataset.pixels / 1e6 * SECONDS_TO_CORRUPT


def _bytes_of_corrupted(request: Request) -> int | None:
    images = _count_corrupted_images(request)
    return images and images * request.dataset.bytes_of(None)


def corrupt_images_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write a file for each corruption; copy the official images if the study names them."""
    from vitscope.corruptions.corrupted_images import build_corrupted
    from vitscope.jobs.opening import open_images

    images, folder = open_images(inputs["images"]), Path(outputs["images"])
    official = Path(inputs["official"]) if inputs.get("official") else None
    count, severities, seed = (values[key] for key in ("images", "severities", "seed"))
    folder.mkdir(exist_ok=True)
    for corruption in values["corruptions"]:
        path = folder / f"{corruption}.safetensors"
        build_corrupted(images, count, corruption, severities, seed, path, official)


CORRUPT_IMAGES = Job(
    run=corrupt_images_job,
    values=lambda study, names: corruptions_of(study, names) | {"seed": study.analysis.seed},
    takes=Takes(seconds=_seconds_to_corrupt, writes=_bytes_of_corrupted),
)
