"""Join the tables of models, or of pairs of models, to one table of a study."""

from dataclasses import asdict

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.measures import registry
from vitscope.networks.finding.cut_points import BLOCKS


def columns_of(study: Study, table: str) -> Values:
    """Return the name and the columns of a table, as plain values."""
    return asdict(BLOCKS) if table == "blocks" else registry.of(study).columns_of(table)


def _values(study: Study, names: Names) -> Values:
    return {"columns": columns_of(study, names["table"])}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    import pandas as pd

    from vitscope.files.tables import Table, read_warnings, warning_metadata

    table = Table(**values["columns"])
    frames = [table.read(path) for path in inputs["subjects"]]
    warnings = warning_metadata(read_warnings(inputs["subjects"]))
    table.write(pd.concat(frames, ignore_index=True), outputs["table"], warnings)
