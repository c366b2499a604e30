"""Extract the latents of one shard of images at every cut point of a model."""

from scripts._job import job

from vitscope.data.split import Split
from vitscope.files.tables import read_table
from vitscope.networks import checkpoints, families
from vitscope.networks.latents import extract, pick_device, shard_rows

with job(snakemake, batches="analysis.batch_size"):
    settings, analysis = snakemake.params.model, snakemake.params.analysis
    model = checkpoints.load_model(snakemake.input.checkpoint, settings)
    digest = checkpoints.read_origin(snakemake.input.checkpoint)["source_sha256"]
    blocks = read_table("blocks", snakemake.input.blocks)
    images = Split(snakemake.input.images)
    rows = shard_rows(len(images), int(snakemake.wildcards.shard), **snakemake.params.selection)
    extract(
        model,
        families.get(settings["family"]).cut_points(model),
        list(blocks[["channels", "height", "width"]].itertuples(index=False, name=None)),
        images.batches(rows, analysis["batch_size"], settings["mean"], settings["std"]),
        len(rows),
        snakemake.output.latents,
        dtype=analysis["latents_dtype"],
        device=pick_device(snakemake.params.device),
        metadata={"data_sha256": images.digest, "checkpoint_sha256": digest},
    )
