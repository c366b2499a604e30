"""Jobs of tables, and a list of all tables by name."""

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.claims.intervals import without_resamples
from vitscope.errors import VitscopeError, nearest
from vitscope.files.pages import Section, page_as_latex
from vitscope.files.tables import Table, read_frame, read_warnings, warning_metadata, write_csv
from vitscope.files.whole import write_text
from vitscope.jobs.job import Files, Job, Resources, Study, Values
from vitscope.measures import registry
from vitscope.networks.finding.cut_points import BLOCKS

if TYPE_CHECKING:
    import pandas as pd

# Tables that belong to no measure: the module and the constant that declare their columns.
OTHERS = {
    "blocks": ("vitscope.networks.finding.cut_points", "BLOCKS"),
    "predictions": ("vitscope.networks.running.prediction_table", "PREDICTIONS"),
    "buildup": ("vitscope.buildup.table", "BUILDUP"),
    "buildup_result": ("vitscope.buildup.table", "RESULT"),
    "training_history": ("vitscope.training.history", "HISTORY"),
    "claims": ("vitscope.claims.tables", "CLAIMS"),
    "agreement": ("vitscope.claims.tables", "AGREEMENT"),
}


@cache
def tables() -> dict[str, Table]:
    """Return all tables by name: tables of measures, tables of their parts, and `OTHERS`."""
    found: dict[str, Table] = {}
    for measure in registry.names():
        declared = registry.declared(measure)
        found |= {table.name: table for table in (declared.part_table, declared.table)}
    for module_name, constant in OTHERS.values():
        other: Table = getattr(import_module(module_name), constant)
        found[other.name] = other
    return found


def find_table(name: str) -> Table:
    if name not in tables():
        raise VitscopeError(f"There is no table '{name}'.{nearest(name, tables())}")
    return tables()[name]


def tables_in(inputs: Files) -> list[str]:
    """Return the paths of all tables among inputs; an input is a path or a list of paths."""
    listed = ([given] if isinstance(given, str) else given for given in inputs.values())
    return [path for paths in listed for path in paths if path.endswith(".parquet")]


def read_all_with_facts(
    table: Table, paths: Iterable[str]
) -> "tuple[pd.DataFrame, dict[str, dict[str, str]]]":
    """Return the rows of a table from several files, with a new index, and each file's metadata."""
    import pandas as pd

    read = {path: table.read_with_facts(path) for path in paths}
    rows = pd.concat([frame for frame, _ in read.values()], ignore_index=True)
    return rows, {path: facts for path, (_, facts) in read.items()}


def read_all(table: Table, paths: Iterable[str]) -> "pd.DataFrame":
    return read_all_with_facts(table, paths)[0]


def columns_of(study: Study, table: str) -> Values:
    """Return the name and the columns of a table, as plain values."""
    return asdict(BLOCKS) if table == "blocks" else registry.of(study).columns_of(table)


def tabulate_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    table = Table(**values["columns"])
    warnings = warning_metadata(read_warnings(inputs["subjects"]))
    table.write(read_all(table, inputs["subjects"]), outputs["table"], warnings)


TABULATE = Job(
    run=tabulate_job, values=lambda study, names: {"columns": columns_of(study, names["table"])}
)


def export_table_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write a table as CSV, with all digits, or as LaTeX, for people."""
    table = without_resamples(read_frame(inputs["table"]))
    if "csv" in outputs:
        write_csv(table, outputs["csv"])
    else:
        name = Path(inputs["table"]).stem
        rows = [
            [f"{c:.4g}" if isinstance(c, float) else str(c) for c in row] for row in table.values
        ]
        section = Section(name, "", [*table.columns], rows)
        write_text(outputs["latex"], page_as_latex(name, [section]))


EXPORT_TABLE = Job(run=export_table_job)
