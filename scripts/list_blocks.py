"""Write the block table of a model."""

from scripts._job import job

from vitscope.networks import checkpoints, families
from vitscope.networks.block_table import BLOCKS
from vitscope.networks.blocks import block_table

with job(snakemake):
    settings = snakemake.params.model
    model = checkpoints.load_model(snakemake.input.checkpoint, settings)
    cut_points = families.get(settings["family"]).cut_points(model)
    blocks = block_table(snakemake.wildcards.model, model, cut_points, settings["image_size"])
    BLOCKS.write(blocks, snakemake.output.blocks)
