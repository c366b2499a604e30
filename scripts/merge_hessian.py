"""Merge the largest eigenvalues of one model, over batches and snapshots."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.measures.hessian.merging import merge, tell_convergence

with job(snakemake):
    merged, facts = merge("hessian", snakemake.input.parts)
    tell_convergence(merged)
    write_table("hessian", merged, snakemake.output.hessian, facts)
