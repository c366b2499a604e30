"""The job of predictions: classify the images of a split with a model."""

from vitscope.errors import VitscopeError
from vitscope.files.tables import warning_metadata
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.networks import with_network
from vitscope.measures import registry
from vitscope.measures.work import Work, work_for_images
from vitscope.networks.running.prediction_table import PREDICTIONS


def _images_of_predictions_job(study: Study, split: str) -> Values:
    wanted = {
        measure.predicted(study)
        for measure in map(registry.declared, registry.names())
        if "predictions" in measure.inputs and measure.split(study) == split
    }
    if len(wanted) != 1:
        raise VitscopeError(f"{study.path}: nothing says which images of '{split}' are classified.")
    return {"wanted": wanted.pop(), "seed": study.analysis.seed}


def _values_of_predictions_job(study: Study, names: Names) -> Values:
    split = names["split"]
    return {
        **with_network(study, names["model"]),
        "model": names["model"],
        "selection": _images_of_predictions_job(study, split),
        # On images with conflicting cues, a model may rightly find another class than the label.
        "labels_are_truth": split == study.analysis.split,
        "batch_size": study.analysis.batch_size,
        "device": study.device,
    }


def _passes_of_split(asked: Request) -> Work | None:
    wanted = _images_of_predictions_job(asked.study, asked.names["split"])["wanted"]
    return work_for_images(1, wanted, asked.images, asked.study.analysis.batch_size)


def predict_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.data.split import labels_of, rows_to_classify
    from vitscope.jobs.opening import open_images, open_running, origin_of_opened_checkpoint
    from vitscope.networks.running.prediction_doubts import warn_about_predictions
    from vitscope.networks.running.predictions import predict

    checkpoint, images = inputs["checkpoint"], open_images(inputs["images"])
    settings = values["network"]
    rows = rows_to_classify(images, **values["selection"])
    labels = labels_of(images, rows)
    batches = images.batches(rows, values["batch_size"], settings["mean"], settings["std"])
    network, device, changed = open_running(inputs, values, resources)
    with changed:
        predictions = predict(network, batches, labels, device, images.outputs)
    # Do not warn if labels are unknown or not the truth: predictions may rightly differ.
    are_truth = values["labels_are_truth"] and (labels >= 0).all()
    warnings = warn_about_predictions(values["model"], images, predictions) if are_truth else []
    origin = {
        "data_sha256": images.digest,
        **origin_of_opened_checkpoint(checkpoint),
        **warning_metadata(warnings),
    }
    names = [images.classes[number] for number in predictions["prediction"]]
    found = predictions.assign(image=rows, class_name=names)
    PREDICTIONS.write(found, outputs["predictions"], origin)


PREDICT = Job(
    run=predict_job,
    values=_values_of_predictions_job,
    takes=Takes(torch=True, work=_passes_of_split),
    batches="analysis.batch_size",
)
