"""Extract the latents of one shard of images at every cut point of a model."""

from scripts._job import job
from vitscope.data.split import Split
from vitscope.networks.checkpoints.loading import load_model, read_origin
from vitscope.networks.running.device import pick_device
from vitscope.networks.running.latents import extract_shard

with job(snakemake, batches="analysis.batch_size"):
    settings, checkpoint = snakemake.params.model, snakemake.input.checkpoint
    extract_shard(
        load_model(checkpoint, settings),
        snakemake.input.blocks,
        Split(snakemake.input.images),
        snakemake.output.latents,
        shard=int(snakemake.wildcards.part),
        selection=snakemake.params.selection,
        settings=settings,
        batch_size=snakemake.params.batch_size,
        dtype=snakemake.params.dtype,
        device=pick_device(snakemake.params.device),
        metadata={"checkpoint_sha256": read_origin(checkpoint)["source_sha256"]},
    )
