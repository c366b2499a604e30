"""Jobs of networks: download and convert their weights, list their cut points."""

from pathlib import Path

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.networks.building.family import module_of


def with_network(study: Study, model: str) -> Values:
    """Return the settings that build a model's network, and the module that builds it."""
    network = study.network(model)
    return {"network": network, "modules": [module_of(network["family"])]}


def checkpoint_entry(study: Study, names: Names) -> Values:
    """Return where a model's weights come from, at the end or at a moment of its training."""
    if "snapshot" in names:
        return study.snapshot(names["model"], names["snapshot"])
    return study.models[names["model"]].checkpoint


def _address_of_checkpoint(study: Study, names: Names) -> Values:
    # Imported here: it imports yaml, which other jobs with a network do not need.
    from vitscope.networks.checkpoints import weight_sources

    # Only this: users of one cache share what they download from the same address.
    return {"checkpoint": weight_sources.file_values(checkpoint_entry(study, names))}


def fetch_checkpoint(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Download the checkpoint and record its hash in the study's lock file."""
    from vitscope.networks.checkpoints.weight_sources import download

    download(
        values["checkpoint"],
        Path(outputs["checkpoint"]),
        Path(resources.lock),
        label=resources.label,
        say=resources.say,
    )


FETCH_CHECKPOINT = Job(run=fetch_checkpoint, values=_address_of_checkpoint)


def convert_checkpoint(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Convert the checkpoint, or take the weights that the network is built with."""
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


CONVERT_CHECKPOINT = Job(
    run=convert_checkpoint,
    values=lambda study, names: {
        **with_network(study, names["model"]),
        "checkpoint": checkpoint_entry(study, names),
    },
    takes=Takes(torch=True, loads=("source",)),
)


def write_blocks(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """List the cut points of the network, which needs no weights."""
    from vitscope.networks.building.networks import empty_network
    from vitscope.networks.finding.blocks import list_blocks
    from vitscope.networks.finding.cut_points import BLOCKS

    settings = values["network"]
    network = inputs["network"] if "network" in inputs else empty_network(settings)
    blocks = list_blocks(values["model"], network, settings, **values["read_at"])
    BLOCKS.write(blocks.table, outputs["blocks"], blocks.metadata())


LIST_BLOCKS = Job(
    run=write_blocks,
    values=lambda study, names: {
        **with_network(study, names["model"]),
        "model": names["model"],
        "read_at": study.models[names["model"]].read_at(),
    },
    takes=Takes(torch=True),
)
