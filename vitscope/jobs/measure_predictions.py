"""Measure what a model says of images."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.jobs.measuring import values_of_measure, write_measured
from vitscope.measures import registry


def _values(study: Study, names: Names) -> Values:
    by_label = registry.of(study).declared(names["measure"]).by_label
    return {**values_of_measure(study, names), "model": names["model"], "by_label": by_label}


def measure_predictions(
    inputs: Files, outputs: Files, values: Values, resources: Resources
) -> None:
    from vitscope.files.tables import OF, check_of, read_metadata
    from vitscope.jobs.opening import open_images
    from vitscope.measures.given import OnPredictions
    from vitscope.networks.running.prediction_table import PREDICTIONS, read_labelled

    predictions, images = inputs["predictions"], open_images(inputs["images"])
    origin, by_label = read_metadata(predictions), values["by_label"]
    check_of(predictions, origin.get(OF), values["model"])
    found = read_labelled(predictions, images) if by_label else PREDICTIONS.read(predictions)
    given = OnPredictions(values["model"], found, images)
    write_measured(values, given, outputs["table"], origin)


MEASURE_PREDICTIONS = Job(run=measure_predictions, values=_values)
