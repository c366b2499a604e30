"""Measure a shard of latents."""

from vitscope.jobs.extract_latents import latents_bytes
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.measures import registry


def _values(study: Study, names: Names) -> Values:
    measures = registry.of(study)
    measure, model, part = names["measure"], names["model"], int(names["part"])
    return {
        "settings": measures.declared(measure).part(study, model, part),
        "first_image": part * study.analysis.shard_size,
        "columns": measures.part_columns_of(measure),
        "modules": [measures.module(measure, "compute")],
    }


def _seconds(request: Request) -> float:
    measures = registry.of(request.study)
    rate = measures.declared(request.names["measure"]).seconds_per_gb
    return rate * latents_bytes(request) / 1e9 if request.network else 0


def _batches(names: Names) -> str | None:
    measure = names["measure"]
    return registry.declared(measure).batch_setting if measure in registry.names() else None


JOB = Job(values=_values, takes=Takes(seconds=_seconds), batches=_batches)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Measure the shard, and write its part."""
    from importlib import import_module

    from vitscope.files.tables import Table
    from vitscope.files.tensors import TensorFile
    from vitscope.measures.given import OnLatents

    (compute,) = values["modules"]
    latents = TensorFile(inputs["latents"])
    given = OnLatents(latents, values["first_image"], resources.threads)
    part = import_module(compute).measure(given, **values["settings"])
    Table(**values["columns"]).write(part, outputs["part"], latents.metadata)
