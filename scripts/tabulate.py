"""Write one table of all models from the tables of each."""

from scripts._job import job

import pandas as pd

from vitscope.files.tables import read_table, write_table

with job(snakemake):
    name = snakemake.params.table
    frames = [read_table(name, path) for path in snakemake.input.models]
    write_table(name, pd.concat(frames, ignore_index=True), snakemake.output.table)
