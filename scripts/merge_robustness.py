"""Merge the corruptions that one model was measured on, and average over severities."""

from scripts._job import job

import pandas as pd

from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.robustness.compute import corruption_error

with job(snakemake):
    parts = snakemake.input.parts
    table = pd.concat([read_table("robustness", part) for part in parts], ignore_index=True)
    origin = read_metadata(parts[0])
    write_table("robustness", table, snakemake.output.robustness, origin)
    write_table("corruption_error", corruption_error(table), snakemake.output.error, origin)
