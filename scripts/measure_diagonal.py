"""Measure the Fourier amplitudes of every image of a shard along the half-diagonal."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.files.tensors import TensorFile
from vitscope.measures.fourier.compute import shard_diagonal

with job(snakemake):
    latents = TensorFile(snakemake.input.latents)
    first = int(snakemake.wildcards.shard) * snakemake.params.analysis["shard_size"]
    diagonal = shard_diagonal(latents, first, snakemake.threads)
    write_table("amplitude_per_image", diagonal, snakemake.output.diagonal, latents.metadata)
