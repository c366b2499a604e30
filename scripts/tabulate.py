"""Write one table of a study from those of its models, or pairs of them."""

from importlib import import_module

import pandas as pd

from scripts._job import job
from vitscope.files.tables import read_warnings, warned

with job(snakemake):
    columns = import_module(snakemake.params.columns)
    table = getattr(columns, "TABLE", None) or columns.BLOCKS
    frames = [table.read(path) for path in snakemake.input.subjects]
    warnings = warned(read_warnings(snakemake.input.subjects))
    table.write(pd.concat(frames, ignore_index=True), snakemake.output.table, warnings)
