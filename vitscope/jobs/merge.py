"""Merge the parts that were measured of a model, or of the two of a pair, to a table."""

from vitscope.files.pairs import by_prefix
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.measures import registry
from vitscope.measures.measure import Measure


def measure_of_parts(measure: Measure) -> Measure:
    """Return the measure that the parts of a table are of: itself, unless it says another."""
    return registry.declared(measure.parts_of) if measure.parts_of else measure


def _values(study: Study, names: Names) -> Values:
    measures = registry.of(study)
    measure = measures.declared(names["measure"])
    measured = measure_of_parts(measure).name
    merging = measures.merging(measure.name)
    return {
        "models": by_prefix(names["model"]),
        "settings": measure.merging(study, names["model"]),
        "columns": measures.columns_of(measure.name),
        "measured": measured,
        "part_columns": measures.part_columns_of(measured),
        "modules": [merging] if merging else [],
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Merge the parts; inputs of the other model of a pair have names that say so."""
    from collections.abc import Iterator
    from pkgutil import resolve_name

    import pandas as pd

    from vitscope.files.tables import OF, Table, add_warnings, check_of, read_part, read_warnings
    from vitscope.measures.given import Parts
    from vitscope.networks.finding.cut_point_columns import BLOCKS, CUT_POINT

    columns, origin = Table(**values["part_columns"]), dict[str, str]()

    def read(prefix: str, model: str) -> Iterator[pd.DataFrame]:
        for path in inputs[f"{prefix}parts"]:
            table, facts = read_part(columns, path, values["measured"])
            check_of(path, facts.get(OF), model)
            # Parts may be of several snapshots, and each says of which.
            origin.update({f"{prefix}{key}": value for key, value in facts.items()})
            yield table

    measured: list[Parts] = []
    for prefix, model in values["models"].items():
        blocks = inputs.get(f"{prefix}blocks")
        cut_points = BLOCKS.read(blocks)[[*CUT_POINT]] if blocks else pd.DataFrame()
        for name in cut_points.get("model", pd.Series()).unique():
            check_of(str(blocks), name, model)
        measured.append(Parts(model, read(prefix, model), cut_points))
    if values["modules"]:
        (merge,) = values["modules"]
        table = resolve_name(merge)(*measured, **values["settings"])
    else:
        (parts,) = measured
        table = pd.concat(parts.tables, ignore_index=True)
    listed = (inputs.get(f"{prefix}blocks") for prefix in values["models"])
    origin = add_warnings(origin, read_warnings(filter(None, listed)))
    Table(**values["columns"]).write(table, outputs["table"], origin)
