"""Measure a model on images, as a whole or a part of what there is to measure."""

from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.measuring import batch_setting_of, values_with_network
from vitscope.measures import registry
from vitscope.measures.measure import Work


def _values(study: Study, names: Names) -> Values:
    return {
        **values_with_network(study, names),
        "model": names["model"],
        "batch_size": study.analysis.batch_size,
        "part": int(names.get("part", 0)),
        "device": study.device,
    }


def work_of_measure(request: Request) -> Work | None:
    """Return the passes that a measure makes for a part, as it says itself."""
    names, cut_points = request.names, request.network.cut_points if request.network else 0
    measure, part = registry.of(request.study).declared(names["measure"]), int(names.get("part", 0))
    return measure.work(request.study, names["model"], part, request.images, cut_points)


def batches_of_measure(names: Names) -> str:
    """Return the setting that says how many images a measure has in memory at once."""
    return batch_setting_of(names) or "analysis.batch_size"


JOB = Job(values=_values, takes=Takes(torch=True, work=work_of_measure), batches=batches_of_measure)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Measure the model, on what the measure reads besides too."""
    from pkgutil import resolve_name

    from vitscope.corruptions.corrupted import CorruptedImages
    from vitscope.files.tables import Table, read_warnings, warning_metadata
    from vitscope.jobs.opening import open_device, open_images, open_network, origin_of
    from vitscope.measures.given import OnModel
    from vitscope.networks.finding.block_table import read_cut_points
    from vitscope.networks.finding.cut_point_columns import BLOCKS
    from vitscope.networks.running.prediction_table import read_labelled
    from vitscope.training.augmented import Augmented

    measure, _ = values["modules"]
    checkpoint, images = inputs["checkpoint"], open_images(inputs["images"])
    predictions, alike = inputs.get("predictions"), inputs.get("alike")
    device = open_device(values["device"])
    proved_on = None if values["part"] else device
    given = OnModel(
        model=values["model"],
        network=open_network(checkpoint, values["network"], resources.count, proved_on),
        cut_points=read_cut_points(inputs["blocks"]),
        images=images,
        device=device,
        settings=values["network"],
        batch_size=values["batch_size"],
        blocks=BLOCKS.read(inputs["blocks"]),
        predictions=read_labelled(predictions, images) if predictions else None,
        corrupted=[CorruptedImages(path) for path in inputs.get("corrupted", ())],
        alike=Augmented(alike) if alike else None,
    )
    table = resolve_name(measure)(given, **values["settings"])
    origin = {"data_sha256": images.digest, **origin_of(checkpoint)}
    origin |= warning_metadata(
        [
            *read_warnings([predictions, inputs["blocks"]] if predictions else [inputs["blocks"]]),
            *given.warnings,
        ]
    )
    if given.alike:
        origin["training_sha256"] = given.alike.metadata["data_sha256"]
    Table(**values["columns"]).write(table, outputs["table"], origin)
