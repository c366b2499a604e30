"""Measure the weights of a model in training, as recorded there or through its snapshots."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.jobs.measuring import values_of_measure, write_measured
from vitscope.networks.building.family import module_of


def _values(study: Study, names: Names) -> Values:
    found, model = values_of_measure(study, names), study.models[names["model"]]
    # What was recorded in training takes no network.
    family = [] if model.history else [module_of(model.family)]
    return {**found, "model": names["model"], "modules": [*found["modules"], *family]}


def measure_weights(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Measure the history of the training, or else its snapshots."""
    from vitscope.files.tensors import TensorFile
    from vitscope.files.whole import sha256_of
    from vitscope.measures.given import OnWeights
    from vitscope.training.history import HISTORY

    history = inputs.get("history")
    if history:
        given = OnWeights(values["model"], history=HISTORY.read(history))
        origin = {"history_sha256": sha256_of(history)}
    else:
        snapshots = [TensorFile(path) for path in inputs["snapshots"]]
        given = OnWeights(values["model"], snapshots=snapshots)
        origin = {"checkpoint_sha256": snapshots[-1].metadata["source_sha256"]}
    write_measured(values, given, outputs["table"], origin)


MEASURE_WEIGHTS = Job(
    run=measure_weights, values=_values, takes=Takes(torch=True, loads=("snapshots",))
)
