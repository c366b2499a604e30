"""Jobs of measures: run one measure, or all measures of feature maps in one pass; merge parts."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import lcm
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from vitscope.files import tables
from vitscope.files.pairs import by_prefix
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.latents import (
    bytes_of_latents_job,
    count_images_of_latents_job,
    values_of_latents_job,
    work_of_shard,
)
from vitscope.jobs.networks import modules_of_network
from vitscope.measures import registry
from vitscope.measures.columns import OF_IMAGE
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.measure import OF_CASE, Case, Measure
from vitscope.measures.needs import CHECKPOINT, MadeInput
from vitscope.measures.work import Work
from vitscope.networks.finding.cut_points import BLOCKS, CUT_POINT
from vitscope.settings.snapshots import END
from vitscope.typed import call_typed

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.jobs.opening import Opened
    from vitscope.networks.running.extraction import HeldMaps


def case_of(study: Study, names: Names) -> Case:
    """Return the case of a job: a measure, and models, with a part or a snapshot."""
    measure, part = registry.of(study).declared(names["measure"]), int(names.get("part", 0))
    model, *others = by_prefix(names["model"]).values()
    snapshot = names.get("snapshot", END)
    return Case(measure, study, model, part, snapshot=snapshot, others=tuple(others))


def job_values_of_case(case: Case) -> Values:
    """Return the job parameters of a case: the measure's settings, columns and modules."""
    measures, name = registry.of(case.study), case.measure.name
    return {
        "settings": case.measure.arguments(case),
        "columns": measures.part_columns_of(name),
        "modules": [case.measure.measure],
    }


def _values_of_measure_job(study: Study, names: Names) -> Values:
    case = case_of(study, names)
    found, need = job_values_of_case(case), case.measure.need
    made = [
        each for each in need.inputs.values() if isinstance(each, MadeInput) and case.names(each)
    ]
    builds = any(each.job == CHECKPOINT.job for each in made)
    models = (case.model, *case.others) if builds else ()
    built = [each for model in models for each in modules_of_network(study, model)]
    return {
        **found,
        **{key: OF_CASE[key](case) for key in need.values},
        "modules": [*found["modules"], f"vitscope.jobs.opening:{need.opens}", *built],
    }


def _passes_of_measure(request: Request) -> Work | None:
    case, network = case_of(request.study, request.names), request.network
    points = network.cut_points if network else 0
    return case.measure.work(case.study, case.model, case.part, request.images, points)


def _takes_of_measure(study: Study, names: Names) -> Takes:
    need = registry.of(study).declared(names["measure"]).need
    return Takes(need.torch, _passes_of_measure if need.runs else None, loads=need.loads)


def _batches_of_measure(names: Names, values: Values) -> str | None:
    name = names["measure"]
    own = registry.declared(name).batch_setting if name in registry.names() else None
    return own or ("analysis.batch_size" if "device" in values else None)


def measure_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Open the inputs of a measure, measure them, and write a table or a part of a table."""
    opens = resolve_name(values["modules"][1])
    measured, origin = _measure_opened(opens(inputs, values, resources), values)
    (output,) = outputs.values()
    tables.Table(**values["columns"]).write(measured, output, origin)


def _measure_opened(opened: "Opened", values: Values) -> "tuple[pd.DataFrame, dict[str, str]]":
    """Return what a measure finds in its opened inputs, and where it comes from."""
    compute = resolve_name(values["modules"][0])
    with opened.changed:
        measured = call_typed(compute, opened.given, values=values["settings"])
    columns = values["columns"]["columns"]
    if opened.rows is not None:
        measured = name_measured_images(measured, columns, opened.rows, values["first_image"])
    for key in opened.named.keys() & columns.keys():
        measured = measured.assign(**{key: opened.named[key]})
    return measured, tables.add_warnings(opened.origin, getattr(opened.given, "warnings", ()))


MEASURE = Job(
    run=measure_job,
    values=_values_of_measure_job,
    takes=_takes_of_measure,
    batches=_batches_of_measure,
)


def name_measured_images(
    table: "pd.DataFrame", columns: tables.Columns, rows: Sequence[int], first: int
) -> "pd.DataFrame":
    """Replace image positions in the column `image` of a part, if it has one, by rows of the split.

    `rows` has the row of each image of the part; `first` is the position of the part's first image.
    """
    if "image" not in columns or columns["image"][1] != OF_IMAGE["image"][1]:
        return table
    return table.assign(image=[rows[position - first] for position in table["image"]])


def measures_in_pass_job(study: Study, model: str) -> list[Measure]:
    """Return the measures of feature maps that a study's figures need for a model."""
    measures = registry.of(study)
    shown = [name for name in study.measures() if model in study.models_of(name)]
    found = [measure_of_parts(measures.declared(name)) for name in shown]
    return [*{each.name: each for each in found if each.needs == "latents"}.values()]


def job_values_of_measures(study: Study, names: Names, measures: Iterable[Measure]) -> Values:
    """Return job parameters of each measure, and the number of images to pass to them at a time."""
    found = {
        each.name: job_values_of_case(case_of(study, {**names, "measure": each.name}))
        for each in measures
    }
    analysis = study.analysis
    batches = (each["settings"].get("batch_size", 1) for each in found.values())
    # Take a multiple of all batch sizes, or the whole shard if that is smaller.
    together = min(lcm(analysis.batch_size, *batches), analysis.shard_size)
    return {"measures": found, "together": together}


def _values_of_pass_job(study: Study, names: Names) -> Values:
    shard = values_of_latents_job(study, names)
    network = {key: shard.pop(key) for key in ("network", "modules", "device")}
    measured = job_values_of_measures(study, names, measures_in_pass_job(study, names["model"]))
    of_measures = [each["modules"] for each in measured["measures"].values()]
    return {
        **network,
        **measured,
        "modules": sum(of_measures, network["modules"]),
        "first_image": shard["shard"] * study.analysis.shard_size,
        "pass": shard,
    }


# What a number of a part takes in a file of parquet, with the columns that say what it is of.
BYTES_OF_NUMBER = 10


def _passes_of_shard(request: Request) -> Work:
    study, names = request.study, request.names
    measured = job_values_of_measures(study, names, measures_in_pass_job(study, names["model"]))
    return work_of_shard(request, holds=measured["together"])


def _seconds_of_pass(request: Request) -> float:
    return _seconds_to_measure(measures_in_pass_job(request.study, request.names["model"]), request)


def _bytes_of_pass(request: Request) -> int | None:
    """Return about what the parts of a pass take; the numbers in lists are neglected."""
    if request.network is None:
        return None
    points, sides = request.network.cut_points, request.network.sides
    measures = measures_in_pass_job(request.study, request.names["model"])
    numbers = sum(points + each.numbers_per_side * sides for each in measures)
    return BYTES_OF_NUMBER * numbers * count_images_of_latents_job(request)


def _seconds_to_measure(measures: Iterable[Measure], request: Request) -> float:
    rate = sum(each.seconds_per_gb for each in measures)
    return rate * bytes_of_latents_job(request) / 1e9 if request.network else 0


def measure_pass_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Run a shard of images through a network once, and write a part for each measure."""
    import pandas as pd

    from vitscope.data.split import shard_rows
    from vitscope.jobs.opening import open_images, open_running, origin_of_opened_checkpoint
    from vitscope.networks.running.extraction import hold_latents_of_shard

    images, measures = open_images(inputs["images"]), values["measures"]
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in measures}

    def measure_maps(first: int, maps: "HeldMaps") -> None:
        given = OnLatents(maps, values["first_image"] + first, resources.threads)
        for name, part in parts.items():
            (compute,) = map(resolve_name, measures[name]["modules"])
            part.append(call_typed(compute, given, values=measures[name]["settings"]))

    shard = values["pass"]
    network, device, changed = open_running(inputs, values, resources, first=not shard["shard"])
    with changed:
        hold_latents_of_shard(
            network,
            inputs["blocks"],
            images,
            measure_maps,
            label=resources.label or "the network",
            settings=values["network"],
            together=values["together"],
            device=device,
            **shard,
        )
    rows = shard_rows(len(images), shard["shard"], **shard["selection"])
    origin = {"data_sha256": images.digest, **origin_of_opened_checkpoint(inputs["checkpoint"])}
    written = {}
    for name, part in parts.items():
        table = tables.Table(**measures[name]["columns"])
        whole = pd.concat(part, ignore_index=True)
        named = name_measured_images(whole, table.columns, rows, values["first_image"])
        written[name] = table.to_bytes(named, origin)
    tables.write_table_parts(written, outputs["parts"])


MEASURE_PASS = Job(
    run=measure_pass_job,
    values=_values_of_pass_job,
    takes=Takes(torch=True, work=_passes_of_shard, seconds=_seconds_of_pass, writes=_bytes_of_pass),
    batches="analysis.batch_size",
)


def measure_of_parts(measure: Measure) -> Measure:
    """Return the measure that makes a measure's parts: itself, unless `parts_of` names another."""
    return registry.declared(measure.parts_of) if measure.parts_of else measure


def _values_of_merge_job(study: Study, names: Names) -> Values:
    measures = registry.of(study)
    measure = measures.declared(names["measure"])
    measured, models = measure_of_parts(measure), by_prefix(names["model"])
    merging = measure.merge.function
    # If latents are kept, this job measures them before it merges. In a notebook, the second model
    # of a pair may be of another study; the model's parts are then measured already.
    shards = {
        prefix: _values_of_measure_job(study, {"measure": measured.name, "model": model})
        for prefix, model in models.items()
        if measured.needs == "latents" and model in study.models
    }
    modules = sum((shard["modules"] for shard in shards.values()), [merging] if merging else [])
    return {
        "models": models,
        "settings": measure.merging(study, names["model"]),
        "columns": measures.columns_of(measure.name),
        "measured": measured.name,
        "part_columns": measures.part_columns_of(measured.name),
        "merge": merging,
        "shards": shards,
        "shard_size": study.analysis.shard_size,
        "modules": modules,
    }


def _takes_of_merge(study: Study, names: Names) -> Takes:
    measured = measure_of_parts(registry.of(study).declared(names["measure"]))
    # Neglect the time with `keep_latents: auto`: it keeps latents only if they are small, and then
    # measuring them takes little time.
    kept = study.analysis.keep_latents is True and measured.needs == "latents"
    return Takes(seconds=partial(_seconds_to_measure, [measured])) if kept else Takes()


def merge_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Merge the measured parts of a model, or of a pair of models, into a table."""
    import pandas as pd

    origin = dict[str, str]()

    def read_parts_of(prefix: str, model: str) -> Iterator[pd.DataFrame]:
        for path, table, facts in _parts_for_merge_job(inputs, values, resources, prefix):
            tables.check_file_model(path, facts.get(tables.OF), model)
            # Keep the metadata of all parts: parts of several snapshots have different keys.
            origin.update({f"{prefix}{key}": value for key, value in facts.items()})
            yield table

    measured: list[Parts] = []
    for prefix, model in values["models"].items():
        blocks = inputs.get(f"{prefix}blocks")
        cut_points = BLOCKS.read(blocks)[[*CUT_POINT]] if blocks else pd.DataFrame()
        for name in cut_points.get("model", pd.Series()).unique():
            tables.check_file_model(str(blocks), name, model)
        measured.append(Parts(model, read_parts_of(prefix, model), cut_points))
    if values["merge"]:
        merge = resolve_name(values["merge"])
        table = call_typed(merge, *measured, values=values["settings"])
    else:
        (parts,) = measured
        table = pd.concat(parts.tables, ignore_index=True)
    listed = (inputs.get(f"{prefix}blocks") for prefix in values["models"])
    origin = tables.add_warnings(origin, tables.read_warnings(filter(None, listed)))
    tables.Table(**values["columns"]).write(table, outputs["table"], origin)


def _parts_for_merge_job(
    inputs: Files, values: Values, resources: Resources, prefix: str
) -> "Iterator[tuple[str, pd.DataFrame, dict[str, str]]]":
    """Yield the path, table and metadata of each part; measure latents here, if any are given."""
    from vitscope.jobs.opening import open_latents

    columns, name = tables.Table(**values["part_columns"]), values["measured"]
    for path in inputs.get(f"{prefix}parts", ()):
        yield path, *tables.read_table_part(columns, path, name)
    for number, path in enumerate(inputs.get(f"{prefix}latents", ())):
        shard = values["shards"][prefix] | {"first_image": number * values["shard_size"]}
        measured, origin = _measure_opened(open_latents({"latents": path}, shard, resources), shard)
        yield path, columns.as_read(measured), origin


MERGE = Job(
    run=merge_job,
    values=_values_of_merge_job,
    takes=_takes_of_merge,
    batches=_batches_of_measure,
)
