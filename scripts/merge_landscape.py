"""Merge the rows of the grid of one model."""

from scripts._job import job

import pandas as pd

from vitscope.files.tables import read_metadata, read_table, write_table

with job(snakemake):
    parts = snakemake.input.parts
    table = pd.concat([read_table("landscape", part) for part in parts], ignore_index=True)
    write_table("landscape", table, snakemake.output.landscape, read_metadata(parts[0]))
