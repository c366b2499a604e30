"""Write one table of a study from those of its models, or pairs of them."""

from typing import TYPE_CHECKING

from vitscope.jobs.job import Files, Job, Names, Resources, Values
from vitscope.jobs.merge import BLOCK_TABLE
from vitscope.measures import registry

if TYPE_CHECKING:
    from vitscope.settings.study import Study


def columns_of(table: str) -> str:
    """Return the module that says the columns of a table."""
    return BLOCK_TABLE if table == "blocks" else registry.module(table, "table")


def _values(study: "Study", names: Names) -> Values:
    return {"modules": [columns_of(names["table"])]}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Join the tables."""
    import pandas as pd

    from vitscope.files.tables import read_warnings, warned
    from vitscope.jobs.opening import open_columns

    (columns,) = values["modules"]
    table = open_columns(columns)
    frames = [table.read(path) for path in inputs["subjects"]]
    warnings = warned(read_warnings(inputs["subjects"]))
    table.write(pd.concat(frames, ignore_index=True), outputs["table"], warnings)
