"""Measure what a model says of images."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.jobs.measuring import values_of_measure


def _values(study: Study, names: Names) -> Values:
    return {**values_of_measure(study, names), "model": names["model"]}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Measure the predictions."""
    from importlib import import_module

    from vitscope.files.tables import Table, read_metadata
    from vitscope.jobs.opening import open_images
    from vitscope.measures.given import OnPredictions
    from vitscope.networks.running.prediction_table import PREDICTIONS

    (compute,) = values["modules"]
    predictions, images = inputs["predictions"], open_images(inputs["images"])
    given = OnPredictions(values["model"], PREDICTIONS.read(predictions), images)
    table = import_module(compute).measure(given, **values["settings"])
    Table(**values["columns"]).write(table, outputs["table"], read_metadata(predictions))
