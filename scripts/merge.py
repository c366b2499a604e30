"""Merge the parts that were measured of a model, or of the two of a pair, to a table."""

from importlib import import_module

from scripts._job import job
from vitscope.files.pairs import by_prefix
from vitscope.measures.merging import Measured, merged

with job(snakemake):
    modules, inputs = snakemake.params.modules, snakemake.input
    measured = {
        prefix: Measured(model, getattr(inputs, f"{prefix}parts"), inputs.get(f"{prefix}blocks"))
        for prefix, model in by_prefix(snakemake.wildcards.model).items()
    }
    table, origin = merged(modules, measured, snakemake.params.settings)
    import_module(modules["table"]).TABLE.write(table, snakemake.output.table, origin)
