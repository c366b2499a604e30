"""Measure the variance of every image of a shard at every cut point."""

from scripts._job import job

from vitscope.tables import write_table
from vitscope.tensorfile import TensorFile
from vitscope.variance import shard_variance

with job(snakemake):
    latents = TensorFile(snakemake.input.latents)
    first = int(snakemake.wildcards.shard) * snakemake.params.analysis["shard_size"]
    variance = shard_variance(latents, first)
    write_table("variance_per_image", variance, snakemake.output.variance, latents.metadata)
