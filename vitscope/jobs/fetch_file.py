"""Download the image of a data set, or a video, from the address that a study names."""

from pathlib import Path

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    entry = study.videos[names["video"]] if "video" in names else study.data[names["dataset"]]
    # No more than this: users of one cache share what they download from the same address.
    return {key: entry.source[key] for key in ("url", "sha256") if key in entry.source}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Download the file, and write what it hashed to into the lock file of the study."""
    from vitscope.web.lockfile import download

    file, lock = Path(outputs["file"]), Path(resources.lock)
    download(values, file, lock, label=resources.label, say=resources.say)
