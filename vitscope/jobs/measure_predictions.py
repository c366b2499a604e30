"""Measure what a model says of images."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.jobs.measuring import values_of_measure, write_measured


def _values(study: Study, names: Names) -> Values:
    return {**values_of_measure(study, names), "model": names["model"]}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Measure the predictions."""
    from vitscope.files.tables import read_metadata
    from vitscope.jobs.opening import open_images
    from vitscope.measures.given import OnPredictions
    from vitscope.networks.running.prediction_table import read_labelled

    predictions, images = inputs["predictions"], open_images(inputs["images"])
    given = OnPredictions(values["model"], read_labelled(predictions, images), images)
    write_measured(values, given, outputs["table"], read_metadata(predictions))
