"""Measure the variance of every image of a shard in bands of frequency, and its radial profile."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.files.tensors import TensorFile
from vitscope.measures.spectrum.compute import shard_spectrum

with job(snakemake):
    latents = TensorFile(snakemake.input.latents)
    analysis = snakemake.params.analysis
    first = int(snakemake.wildcards.shard) * analysis["shard_size"]
    edges, radial = analysis["spectrum"]["edges"], analysis["fourier"]["radial"]
    bands, profile = shard_spectrum(latents, first, edges, radial, snakemake.threads)
    write_table("band_variance_per_image", bands, snakemake.output.bands, latents.metadata)
    write_table("amplitude_per_image", profile, snakemake.output.radial, latents.metadata)
