"""Write one table of all models from the tables of each."""

from importlib import import_module

from scripts._job import job

import pandas as pd

with job(snakemake):
    columns = import_module(snakemake.params.columns)
    table = getattr(columns, "TABLE", None) or columns.BLOCKS
    frames = [table.read(path) for path in snakemake.input.models]
    table.write(pd.concat(frames, ignore_index=True), snakemake.output.table)
