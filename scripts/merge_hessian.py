"""Merge the largest eigenvalues of one model, over batches and snapshots."""

from scripts._job import job

from vitscope.hessian.merging import merge, tell_convergence
from vitscope.tables import write_table

with job(snakemake):
    merged, facts = merge("hessian", snakemake.input.parts)
    tell_convergence(merged)
    write_table("hessian", merged, snakemake.output.hessian, facts)
