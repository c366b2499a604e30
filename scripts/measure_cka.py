"""Measure the HSIC of all pairs of cut points over each batch of a shard."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.files.tensors import TensorFile
from vitscope.measures.cka.compute import shard_hsic

with job(snakemake, batches="analysis.cka.batch_size"):
    latents = TensorFile(snakemake.input.latents)
    first = int(snakemake.wildcards.shard) * snakemake.params.analysis["shard_size"]
    hsic = shard_hsic(latents, first, snakemake.params.batch_size)
    write_table("cka_per_shard", hsic, snakemake.output.hsic, latents.metadata)
