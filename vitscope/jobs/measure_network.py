"""Measure the network of a model as it is, with its weights and without images."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.jobs.measuring import values_with_network, write_measured


def _values(study: Study, names: Names) -> Values:
    return {**values_with_network(study, names), "model": names["model"]}


def measure_network(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.jobs.opening import open_network, origin_of
    from vitscope.measures.given import OnNetwork

    network = open_network(inputs["checkpoint"], values["network"])
    given = OnNetwork(values["model"], network, values["network"])
    write_measured(values, given, outputs["table"], origin_of(inputs["checkpoint"]))


MEASURE_NETWORK = Job(
    run=measure_network, values=_values, takes=Takes(torch=True, loads=("checkpoint",))
)
