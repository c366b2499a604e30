"""Merge the parts that were measured of a model, or of the two of a pair, to a table."""

from importlib import import_module

import pandas as pd

from scripts._job import job
from vitscope.files.pairs import by_prefix
from vitscope.files.tables import read_metadata
from vitscope.measures.given import Parts

with job(snakemake):
    modules, inputs = snakemake.params.modules, snakemake.input
    measured = import_module(modules["part"])
    columns = getattr(measured, "PART", measured.TABLE)
    measured_of, origin = [], {}
    for prefix, model in by_prefix(snakemake.wildcards.model).items():
        points, paths = pd.DataFrame(), getattr(inputs, f"{prefix}parts")
        if modules["blocks"]:
            listed = import_module(modules["blocks"])
            points = listed.BLOCKS.read(getattr(inputs, f"{prefix}blocks"))[[*listed.CUT_POINT]]
        measured_of.append(Parts(model, map(columns.read, paths), points))
        # Parts may be of several snapshots, and each says of which.
        facts = [fact for path in paths for fact in read_metadata(path).items()]
        origin |= {f"{prefix}{key}": value for key, value in facts}
    if modules["merge"]:
        table = import_module(modules["merge"]).merge(*measured_of, **snakemake.params.settings)
    else:
        (parts,) = measured_of
        table = pd.concat(parts.tables, ignore_index=True)
    import_module(modules["table"]).TABLE.write(table, snakemake.output.table, origin)
