"""Extract the latents of one shard of images at every cut point of a model."""

from scripts._job import job
from vitscope.data.image_rows import shard_rows
from vitscope.data.split import Split
from vitscope.networks.block_table import BLOCKS, read_cut_points
from vitscope.networks.device import pick_device
from vitscope.networks.latents import extract
from vitscope.networks.loading import load_model, read_origin

with job(snakemake, batches="analysis.batch_size"):
    settings = snakemake.params.model
    model = load_model(snakemake.input.checkpoint, settings)
    digest = read_origin(snakemake.input.checkpoint)["source_sha256"]
    blocks = BLOCKS.read(snakemake.input.blocks)
    images = Split(snakemake.input.images)
    rows = shard_rows(len(images), int(snakemake.wildcards.part), **snakemake.params.selection)
    extract(
        model,
        read_cut_points(snakemake.input.blocks),
        list(blocks[["channels", "height", "width"]].itertuples(index=False, name=None)),
        images.batches(rows, snakemake.params.batch_size, settings["mean"], settings["std"]),
        len(rows),
        snakemake.output.latents,
        dtype=snakemake.params.dtype,
        device=pick_device(snakemake.params.device),
        metadata={"data_sha256": images.digest, "checkpoint_sha256": digest},
    )
