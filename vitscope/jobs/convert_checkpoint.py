"""Verify the checkpoint of a model and write it as safetensors with the model's own keys."""

from pathlib import Path

from vitscope.jobs.fetch_checkpoint import checkpoint_entry
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.jobs.measuring import with_network


def _values(study: Study, names: Names) -> Values:
    return {
        **with_network(study, names["model"]),
        "checkpoint": checkpoint_entry(study, names),
    }


JOB = Job(values=_values, takes=Takes(torch=True, loads=("source",)))


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Convert the checkpoint, or take the weights that the network is made with."""
    from vitscope.networks.checkpoints import weight_sources
    from vitscope.networks.checkpoints.conversion import convert, convert_made

    entry, label = values["checkpoint"], resources.label
    network, target = values["network"], Path(outputs["checkpoint"])
    origin = weight_sources.describe_source(entry)
    if "made" in entry:
        convert_made(network, target, label=label, origin=origin)
        return
    source, lock = Path(inputs["source"]), Path(resources.lock)
    convert(
        source,
        network,
        target,
        label=label,
        origin=origin,
        sha256=weight_sources.confirm(entry, source, lock, label=label),
        key=entry.get("key"),
        ignore=entry.get("ignore", ()),
    )
