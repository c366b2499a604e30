"""Merge the parts that were measured of a model to its table."""

from importlib import import_module

import pandas as pd

from scripts._job import job
from vitscope.files.tables import read_metadata
from vitscope.measures.given import Parts

with job(snakemake):
    modules, paths = snakemake.params.modules, snakemake.input.parts
    measured = import_module(modules["part"])
    columns = getattr(measured, "PART", measured.TABLE)
    tables = (columns.read(path) for path in paths)
    if modules["merge"]:
        points = pd.DataFrame()
        if modules["blocks"]:
            listed = import_module(modules["blocks"])
            points = listed.BLOCKS.read(snakemake.input.blocks)[[*listed.CUT_POINT]]
        parts = Parts(snakemake.wildcards.model, tables, points)
        table = import_module(modules["merge"]).merge(parts, **snakemake.params.settings)
    else:
        table = pd.concat(tables, ignore_index=True)
    # Parts may be of several snapshots, and each says of which.
    origin = {key: value for path in paths for key, value in read_metadata(path).items()}
    import_module(modules["table"]).TABLE.write(table, snakemake.output.table, origin)
