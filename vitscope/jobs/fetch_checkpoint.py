"""Download the checkpoint of a model, or one of its snapshots."""

from pathlib import Path

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.networks.checkpoints import weight_sources


def checkpoint_entry(study: Study, names: Names) -> Values:
    """Return where the weights of a model come from, at the end or at a moment of its training."""
    if "snapshot" in names:
        return study.snapshot(names["model"], names["snapshot"])
    return study.models[names["model"]].checkpoint


def _values(study: Study, names: Names) -> Values:
    # No more than this: users of one cache share what they download from the same address.
    return {"checkpoint": weight_sources.file_values(checkpoint_entry(study, names))}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Download the checkpoint, and write what it hashed to into the lock file of the study."""
    from vitscope.networks.checkpoints.weight_sources import download

    download(
        values["checkpoint"],
        Path(outputs["checkpoint"]),
        Path(resources.lock),
        label=resources.label,
        say=resources.say,
    )
