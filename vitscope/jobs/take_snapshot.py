"""Copy the weights after an epoch of a training to where models look for their snapshots."""

from dataclasses import asdict
from pathlib import Path

from vitscope.errors import unknown
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.settings.snapshots import END, INIT, WARMUP, after_epoch, epochs_of


def _values(study: Study, names: Names) -> Values:
    """Return after which epoch the recipe of a model keeps its weights; refuse any other."""
    model, epoch = names["model"], int(names["epoch"])
    kept = epochs_of(asdict(study.recipe(model)))
    if after_epoch(epoch) not in kept:
        allowed = [name for name in kept if name not in (INIT, WARMUP, END)]
        where = f"training.snapshots, for models.{model}"
        raise unknown(study.path, where, after_epoch(epoch), allowed)
    return {"epoch": epoch}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.files.whole import copy_file

    target = Path(outputs["weights"])
    copy_file(Path(inputs["epochs"]) / target.name, target)
