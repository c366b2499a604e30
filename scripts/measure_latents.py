"""Measure a shard of latents."""

from scripts._job import job, room
from vitscope.files.tensors import TensorFile
from vitscope.measures.given import OnLatents

with job(snakemake, batches=snakemake.params.batches):
    compute, columns = room(snakemake, "compute"), room(snakemake, "table")
    latents = TensorFile(snakemake.input.latents)
    first = int(snakemake.wildcards.part) * snakemake.params.shard_size
    part = compute.measure(
        OnLatents(latents, first, snakemake.threads), **snakemake.params.settings
    )
    columns.PART.write(part, snakemake.output.part, latents.metadata)
