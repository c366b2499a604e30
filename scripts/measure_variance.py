"""Measure the variance of every image of a shard at every cut point."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.files.tensors import TensorFile
from vitscope.measures.feature_variance.compute import shard_variance

with job(snakemake):
    latents = TensorFile(snakemake.input.latents)
    first = int(snakemake.wildcards.shard) * snakemake.params.analysis["shard_size"]
    variance = shard_variance(latents, first)
    write_table("variance_per_image", variance, snakemake.output.variance, latents.metadata)
