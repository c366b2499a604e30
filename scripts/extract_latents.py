"""Extract the latents of one shard of images at every cut point of a model."""

from scripts._job import job

from vitscope.data.split import Split
from vitscope.networks import checkpoints, families
from vitscope.networks.block_table import BLOCKS
from vitscope.networks.latents import extract, pick_device, shard_rows

with job(snakemake, batches="analysis.batch_size"):
    settings = snakemake.params.model
    model = checkpoints.load_model(snakemake.input.checkpoint, settings)
    digest = checkpoints.read_origin(snakemake.input.checkpoint)["source_sha256"]
    blocks = BLOCKS.read(snakemake.input.blocks)
    images = Split(snakemake.input.images)
    rows = shard_rows(len(images), int(snakemake.wildcards.part), **snakemake.params.selection)
    extract(
        model,
        families.get(settings["family"]).cut_points(model),
        list(blocks[["channels", "height", "width"]].itertuples(index=False, name=None)),
        images.batches(rows, snakemake.params.batch_size, settings["mean"], settings["std"]),
        len(rows),
        snakemake.output.latents,
        dtype=snakemake.params.dtype,
        device=pick_device(snakemake.params.device),
        metadata={"data_sha256": images.digest, "checkpoint_sha256": digest},
    )
