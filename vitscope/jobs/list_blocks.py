"""Write the block table of a model."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.jobs.measuring import with_network


def _values(study: Study, names: Names) -> Values:
    model = names["model"]
    read_at = study.models[model].read_at()
    return {**with_network(study, model), "model": model, "read_at": read_at}


JOB = Job(values=_values, takes=Takes(torch=True))


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """List the cut points of the network, which needs no weights."""
    from vitscope.networks.building.networks import empty_network
    from vitscope.networks.finding.blocks import list_blocks
    from vitscope.networks.finding.cut_points import BLOCKS

    settings = values["network"]
    network = inputs["network"] if "network" in inputs else empty_network(settings)
    blocks = list_blocks(values["model"], network, settings, **values["read_at"])
    BLOCKS.write(blocks.table, outputs["blocks"], blocks.metadata())
