"""Merge the parts that were measured of a model, or of the two of a pair, to a table."""

from importlib import import_module

from scripts._job import job
from vitscope.files.pairs import by_prefix
from vitscope.measures.merging import Measured, merged

with job(snakemake):
    modules, inputs = snakemake.params.modules, snakemake.input
    measured = {}
    for prefix, model in by_prefix(snakemake.wildcards.model).items():
        parts, blocks = (getattr(inputs, f"{prefix}{of}", None) for of in ("parts", "blocks"))
        measured[prefix] = Measured(model, parts, blocks)
    table, origin = merged(modules, measured, snakemake.params.settings)
    import_module(modules["table"]).TABLE.write(table, snakemake.output.table, origin)
