"""Measure the loss of a model on augmented images of its training, at a moment of it."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.jobs.measure_model import batches_of_measure, work_of_measure
from vitscope.jobs.measuring import values_with_network
from vitscope.settings.snapshots import END


def _values(study: Study, names: Names) -> Values:
    return {
        **values_with_network(study, names),
        "named": {"model": names["model"], "snapshot": names["snapshot"]},
        "part": int(names.get("part", 0)),
        "device": study.device,
    }


JOB = Job(values=_values, takes=Takes(torch=True, work=work_of_measure), batches=batches_of_measure)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from pkgutil import resolve_name

    from vitscope.files.tables import Table
    from vitscope.jobs.opening import open_device, open_network, origin_of
    from vitscope.measures.given import OnLoss
    from vitscope.networks.finding.block_table import read_cut_points
    from vitscope.training.augmented import Augmented

    measure, _ = values["modules"]
    checkpoint, images = inputs["checkpoint"], Augmented(inputs["images"])
    device = open_device(values["device"])
    given = OnLoss(
        open_network(checkpoint, values["network"], proved_on=None if values["part"] else device),
        images,
        device,
        read_cut_points(inputs["blocks"]),
        resources.say_of_it,
    )
    part = resolve_name(measure)(given, **values["settings"])
    snapshot = values["named"]["snapshot"]
    what = "checkpoint" if snapshot == END else f"snapshot {snapshot}"
    origin = {key.replace("checkpoint", what): fact for key, fact in origin_of(checkpoint).items()}
    table = Table(**values["columns"])
    named = {key: name for key, name in values["named"].items() if key in table.columns}
    origin = {"data_sha256": images.metadata["data_sha256"], **origin}
    table.write(part.assign(**named), outputs["part"], origin)
