"""Merge the parts that were measured of a model, or of the two of a pair, to a table."""

from typing import TYPE_CHECKING

from vitscope.files.pairs import by_prefix
from vitscope.jobs.job import Files, Job, Names, Resources, Values
from vitscope.measures import registry
from vitscope.measures.measure import Measure

if TYPE_CHECKING:
    from vitscope.settings.study import Study

BLOCK_TABLE = "vitscope.networks.finding.block_table"


def measure_of_parts(measure: Measure) -> Measure:
    """Return the measure that the parts of a table are of: itself, unless it says another."""
    return registry.declared(measure.parts_of) if measure.parts_of else measure


def _values(study: "Study", names: Names) -> Values:
    measure = registry.declared(names["measure"])
    modules = {
        "part": registry.module(measure_of_parts(measure).name, "table"),
        "table": registry.module(measure.name, "table"),
    }
    if merging := registry.merging_module(measure.name):
        modules["merge"] = merging
    if measure.merges_blocks:
        modules["blocks"] = BLOCK_TABLE
    return {
        "models": by_prefix(names["model"]),
        "settings": measure.merging(study, names["model"]),
        "modules": modules,
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Merge the parts; inputs of the other model of a pair have names that say so."""
    from vitscope.jobs.opening import open_columns
    from vitscope.measures.merging import Measured, merged

    measured = {
        prefix: Measured(model, inputs[f"{prefix}parts"], inputs.get(f"{prefix}blocks"))
        for prefix, model in values["models"].items()
    }
    modules = {"merge": None, "blocks": None, **values["modules"]}
    table, origin = merged(modules, measured, values["settings"])
    open_columns(modules["table"]).write(table, outputs["table"], origin)
