"""Merge the densities of the eigenvalues of one model, over batches and snapshots."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.measures.hessian.merging import merge

with job(snakemake):
    merged, facts = merge("hessian_density", snakemake.input.parts)
    write_table("hessian_density", merged, snakemake.output.density, facts)
