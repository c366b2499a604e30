"""Measure a shard of latents."""

from typing import TYPE_CHECKING

from vitscope.jobs.extract_latents import latents_bytes
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Takes, Values
from vitscope.measures import registry

if TYPE_CHECKING:
    from vitscope.settings.study import Study


def _values(study: "Study", names: Names) -> Values:
    measure, model, part = names["measure"], names["model"], int(names["part"])
    return {
        "settings": registry.declared(measure).part(study, model, part),
        "first_image": part * study.analysis.shard_size,
        "modules": [registry.module(measure, "compute"), registry.module(measure, "table")],
    }


def _seconds(request: Request) -> float:
    rate = registry.declared(request.names["measure"]).seconds_per_gb
    return rate * latents_bytes(request) / 1e9 if request.network else 0


def _batches(names: Names) -> str | None:
    return registry.declared(names["measure"]).batch_setting


JOB = Job(values=_values, takes=Takes(seconds=_seconds), batches=_batches)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Measure the shard, and write its part."""
    from importlib import import_module

    from vitscope.files.tensors import TensorFile
    from vitscope.jobs.opening import open_columns
    from vitscope.measures.given import OnLatents

    compute, columns = values["modules"]
    latents = TensorFile(inputs["latents"])
    given = OnLatents(latents, values["first_image"], resources.threads)
    part = import_module(compute).measure(given, **values["settings"])
    open_columns(columns, "PART").write(part, outputs["part"], latents.metadata)
