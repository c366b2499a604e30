"""Measure a shard of latents."""

from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.latents import latents_bytes
from vitscope.jobs.measuring import batch_setting_of, values_of_measure, write_measured
from vitscope.measures import registry


def _values(study: Study, names: Names) -> Values:
    first = int(names["part"]) * study.analysis.shard_size
    return {**values_of_measure(study, names), "first_image": first}


def _seconds(request: Request) -> float:
    measures = registry.of(request.study)
    rate = measures.declared(request.names["measure"]).seconds_per_gb
    return rate * latents_bytes(request) / 1e9 if request.network else 0


def measure_latents(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Measure the shard, and write its part."""
    from vitscope.data.split import parted
    from vitscope.files.tensors import TensorFile
    from vitscope.measures.given import OnLatents

    latents = TensorFile(inputs["latents"])
    given = OnLatents(latents, values["first_image"], resources.threads)
    write_measured(values, given, outputs["part"], *parted(latents.metadata))


MEASURE_LATENTS = Job(
    run=measure_latents, values=_values, takes=Takes(seconds=_seconds), batches=batch_setting_of
)
