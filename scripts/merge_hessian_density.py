"""Merge the densities of the eigenvalues of one model, over batches and snapshots."""

from scripts._job import job

from vitscope.hessian.merging import merge
from vitscope.tables import write_table

with job(snakemake):
    merged, facts = merge("hessian_density", snakemake.input.parts)
    write_table("hessian_density", merged, snakemake.output.density, facts)
