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
    merging = measures.merging_module(measure.name)
    return {
        "models": by_prefix(names["model"]),
        "settings": measure.merging(study, names["model"]),
        "columns": measures.columns_of(measure.name),
        "part_columns": measures.part_columns_of(measure_of_parts(measure).name),
        "modules": [merging] if merging else [],
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Merge the parts; inputs of the other model of a pair have names that say so."""
    from vitscope.files.tables import Table
    from vitscope.measures.merging import Measured, merge_parts

    measured = {
        prefix: Measured(model, inputs[f"{prefix}parts"], inputs.get(f"{prefix}blocks"))
        for prefix, model in values["models"].items()
    }
    part = Table(**values["part_columns"])
    table, origin = merge_parts(measured, part, values["settings"], *values["modules"])
    Table(**values["columns"]).write(table, outputs["table"], origin)
