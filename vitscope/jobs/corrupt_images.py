"""Write the images of a split under one corruption, at all severities."""

from pathlib import Path

from vitscope.jobs.build_split import UNCOUNTED_IMAGES
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.measures import registry

# For a million pixels: by glass_blur at 224 pixels, the slowest corruption.
SECONDS_PER_MEGAPIXEL = 0.6


def corruptions_of(study: Study) -> Values:
    """Return which images are corrupted, and how severely."""
    (measure,) = (m for m in map(registry.declared, registry.names()) if "corrupted" in m.reads)
    return measure.corrupted(study)


def _values(study: Study, names: Names) -> Values:
    wanted = corruptions_of(study)
    return {
        "corruption": names["corruption"],
        "images": wanted["images"],
        "severities": wanted["severities"],
        "seed": study.analysis.seed,
    }


def _images(request: Request) -> int | None:
    """Return how many images are made, if that is known."""
    wanted = corruptions_of(request.study)
    known = [count for count in (wanted["images"], request.images) if count is not None]
    return min(known) * len(wanted["severities"]) if known else None


def _seconds(request: Request) -> float:
    severities = len(corruptions_of(request.study)["severities"])
    images = _images(request) or UNCOUNTED_IMAGES * severities
    return images * request.dataset.pixels / 1e6 * SECONDS_PER_MEGAPIXEL


def _bytes(request: Request) -> int | None:
    images = _images(request)
    return images and images * request.dataset.bytes_of(None)


JOB = Job(values=_values, takes=Takes(seconds=_seconds, writes=_bytes))


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the corrupted images, or take the official ones if they are there."""
    from vitscope.corruptions.corrupted import build
    from vitscope.jobs.opening import open_images

    build(
        open_images(inputs["images"]),
        values["images"],
        values["corruption"],
        values["severities"],
        values["seed"],
        outputs["images"],
        Path(inputs["official"]) if inputs.get("official") else None,
    )
