"""Run a shard of images through a network once, and measure its maps while they are in memory."""

from collections.abc import Iterable
from math import lcm

from vitscope.jobs.extract_latents import latents_bytes, work_of_shard
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.measuring import name_images, values_of_measure, with_network
from vitscope.jobs.merge import measure_of_parts
from vitscope.measures import registry
from vitscope.measures.measure import Measure, Work


def measures_of_pass(study: Study, model: str) -> list[Measure]:
    """Return the measures of maps that the figures of a study need of a model."""
    measures = registry.of(study)
    shown = [name for name in study.measures() if model in study.models_of(name)]
    found = [measure_of_parts(measures.declared(name)) for name in shown]
    return [*{each.name: each for each in found if each.needs == "latents"}.values()]


def measured_in_pass(study: Study, names: Names, measures: Iterable[Measure]) -> Values:
    """Return how each measure measures, and for how many images at once all of them do.

    Some take batches of their own: they have whole ones, or all images of the shard.
    """
    found = {
        measure.name: values_of_measure(study, {**names, "measure": measure.name})
        for measure in measures
    }
    analysis = study.analysis
    batches = (each["settings"].get("batch_size", 1) for each in found.values())
    together = min(lcm(analysis.batch_size, *batches), analysis.shard_size)
    return {"measures": found, "together": together}


def _values(study: Study, names: Names) -> Values:
    analysis, model, part = study.analysis, names["model"], int(names["part"])
    network = with_network(study, model)
    measured = measured_in_pass(study, names, measures_of_pass(study, model))
    of_measures = [each["modules"] for each in measured["measures"].values()]
    return {
        **network,
        **measured,
        "modules": sum(of_measures, network["modules"]),
        "first_image": part * analysis.shard_size,
        "pass": {
            "shard": part,
            "selection": study.selection(model),
            "batch_size": analysis.batch_size,
            "dtype": analysis.latents_dtype,
        },
        "device": study.device,
    }


def _work(request: Request) -> Work:
    study, names = request.study, request.names
    measured = measured_in_pass(study, names, measures_of_pass(study, names["model"]))
    return work_of_shard(request, holds=measured["together"])


def _seconds(request: Request) -> float:
    if not request.network:
        return 0
    rates = [m.seconds_per_gb for m in measures_of_pass(request.study, request.names["model"])]
    return sum(rates) * latents_bytes(request) / 1e9


JOB = Job(
    values=_values,
    takes=Takes(torch=True, work=_work, seconds=_seconds),
    batches="analysis.batch_size",
)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the part of each measure, all of them to one file."""
    from pkgutil import resolve_name

    import pandas as pd

    from vitscope.data.image_rows import shard_rows
    from vitscope.files.tables import Table, write_parts
    from vitscope.jobs.opening import open_device, open_images, open_network, origin_of
    from vitscope.measures.given import OnLatents
    from vitscope.networks.running.held import HeldMaps, hold_shard

    images, measures = open_images(inputs["images"]), values["measures"]
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in measures}

    def measure(first: int, maps: HeldMaps) -> None:
        given = OnLatents(maps, values["first_image"] + first, resources.threads)
        for name, part in parts.items():
            (function,) = measures[name]["modules"]
            part.append(resolve_name(function)(given, **measures[name]["settings"]))

    device, run = open_device(values["device"]), values["pass"]
    proved_on = None if run["shard"] else device
    hold_shard(
        open_network(inputs["checkpoint"], values["network"], resources.count, proved_on),
        inputs["blocks"],
        images,
        measure,
        label=resources.label or "the network",
        settings=values["network"],
        together=values["together"],
        device=device,
        **run,
    )
    rows = shard_rows(len(images), run["shard"], **run["selection"])
    origin = {"data_sha256": images.digest, **origin_of(inputs["checkpoint"])}
    written = {}
    for name, part in parts.items():
        table = Table(**measures[name]["columns"])
        whole = pd.concat(part, ignore_index=True)
        named = name_images(whole, table.columns, rows, values["first_image"])
        written[name] = table.to_bytes(named, origin)
    write_parts(written, outputs["parts"])
