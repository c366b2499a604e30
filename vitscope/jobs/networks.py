"""Jobs of networks: download and convert weights, list cut points."""

from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.networks.building.family import module_of
from vitscope.networks.finding.cut_points import BLOCKS

if TYPE_CHECKING:
    from torch import nn

    from vitscope.networks.finding.blocks import Blocks


# Describes the interventions of a study, in jobs of networks that have some.
INTERVENES = "vitscope.networks.running.asked_interventions:describe_study_interventions"


def modules_of_network(study: Study, model: str) -> list[str]:
    """Return the modules that a job of a network reaches by computed names."""
    entry = study.models[model]
    return [module_of(entry.family), *([INTERVENES] if entry.interventions else [])]


def with_network(study: Study, model: str) -> Values:
    """Return the settings that build a model's network, and the module that builds it."""
    return {"network": study.network(model), "modules": modules_of_network(study, model)}


def checkpoint_entry(study: Study, names: Names) -> Values:
    """Return the entry for a model's weights: its checkpoint, or the snapshot in `names`."""
    if "snapshot" in names:
        return study.snapshot(names["model"], names["snapshot"])
    return study.models[names["model"]].checkpoint


def _address_for_checkpoint_job(study: Study, names: Names) -> Values:
    # This imports yaml, which other jobs with a network do not need.
    from vitscope.networks.checkpoints.weight_sources import PLACES

    # Return only what identifies the download, so that users of a shared cache share the file.
    entry = checkpoint_entry(study, names)
    return {"checkpoint": {key: entry[key] for key in (*PLACES, "sha256") if key in entry}}


def fetch_checkpoint_job(
    inputs: Files, outputs: Files, values: Values, resources: Resources
) -> None:
    """Download the checkpoint and record its hash in the study's lock file."""
    from vitscope.networks.checkpoints.weight_sources import download_checkpoint

    file, lock = Path(outputs["checkpoint"]), Path(resources.lock)
    download_checkpoint(values["checkpoint"], file, lock, label=resources.label, say=resources.say)


FETCH_CHECKPOINT = Job(run=fetch_checkpoint_job, values=_address_for_checkpoint_job)


def convert_checkpoint_job(
    inputs: Files, outputs: Files, values: Values, resources: Resources
) -> None:
    """Write the block table of a network, its converted weights, or both."""
    if "blocks" in outputs:
        blocks = find_blocks_for_job(values, inputs.get("network"))
        BLOCKS.write(blocks.table, outputs["blocks"], blocks.metadata())
    if "checkpoint" in outputs:
        _convert_weights_in_job(inputs, Path(outputs["checkpoint"]), values, resources)


def find_blocks_for_job(values: Values, network: "nn.Module | None" = None) -> "Blocks":
    """List the cut points of a network; build it without weights if it is not given."""
    from vitscope.networks.building.networks import empty_network
    from vitscope.networks.finding.blocks import list_blocks

    settings = values["network"]
    built = empty_network(settings) if network is None else network
    return list_blocks(values["model"], built, settings, **values["read_at"])


def _convert_weights_in_job(
    inputs: Files, target: Path, values: Values, resources: Resources
) -> None:
    from vitscope.networks.checkpoints import weight_sources
    from vitscope.networks.checkpoints.conversion import convert, convert_made

    entry, network, label = values["checkpoint"], values["network"], resources.label
    origin = weight_sources.describe_source(entry)
    if "made" in entry:
        convert_made(network, target, label=label, origin=origin)
        return
    source = Path(inputs["source"])
    sha256 = weight_sources.confirm(entry, source, Path(resources.lock), label=label)
    chosen = {"key": entry.get("key"), "ignore": entry.get("ignore", ())}
    convert(source, network, target, label=label, origin=origin, sha256=sha256, **chosen)


def values_of_blocks(study: Study, names: Names) -> Values:
    model = names["model"]
    read_at = study.models[model].read_at()
    return {**with_network(study, model), "model": model, "read_at": read_at}


CONVERT_CHECKPOINT = Job(
    run=convert_checkpoint_job,
    values=lambda study, names: {
        **values_of_blocks(study, names),
        "checkpoint": checkpoint_entry(study, names),
    },
    takes=Takes(torch=True, loads=("source",)),
)
