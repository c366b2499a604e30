"""Classify the images of a split by a model."""

from vitscope.errors import VitscopeError
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.measures import registry
from vitscope.measures.measure import Work, passes
from vitscope.networks.building.family import module_of


def _selection(study: Study, split: str) -> Values:
    """Return which images of a split are classified, for the measures of predictions."""
    wanted = {
        measure.predicted(study)
        for measure in map(registry.declared, registry.names())
        if measure.reads_predictions and measure.split(study) == split
    }
    if len(wanted) != 1:
        raise VitscopeError(f"{study.path}: nothing says which images of '{split}' are classified.")
    return {"wanted": wanted.pop(), "seed": study.analysis.seed}


def _values(study: Study, names: Names) -> Values:
    network, split = study.network(names["model"]), names["split"]
    return {
        "model": names["model"],
        "network": network,
        "selection": _selection(study, split),
        # Where cues conflict, a model may find another class than the label.
        "labels_are_truth": split == study.analysis.split,
        "batch_size": study.analysis.batch_size,
        "device": study.device,
        "modules": [module_of(network["family"])],
    }


def _work(request: Request) -> Work | None:
    wanted = _selection(request.study, request.names["split"])["wanted"]
    return passes(1, wanted, request.images, request.study.analysis.batch_size)


JOB = Job(values=_values, takes=Takes(torch=True, work=_work), batches="analysis.batch_size")


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Classify the images."""
    from vitscope.files.tables import warning_metadata
    from vitscope.jobs.opening import open_device, open_images, open_network, origin_of
    from vitscope.networks.running.classifying import classify
    from vitscope.networks.running.prediction_table import PREDICTIONS

    checkpoint, images = inputs["checkpoint"], open_images(inputs["images"])
    predictions, warnings = classify(
        values["model"],
        open_network(checkpoint, values["network"]),
        images,
        settings=values["network"],
        selection=values["selection"],
        batch_size=values["batch_size"],
        device=open_device(values["device"]),
        labels_are_truth=values["labels_are_truth"],
    )
    origin = {"data_sha256": images.digest, **origin_of(checkpoint), **warning_metadata(warnings)}
    PREDICTIONS.write(predictions, outputs["predictions"], origin)
