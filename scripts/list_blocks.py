"""Write the block table of a model."""

from scripts._job import job

from vitscope import checkpoints, families
from vitscope.blocks import block_table
from vitscope.tables import write_table

with job(snakemake):
    settings = snakemake.params.model
    model = checkpoints.load_model(snakemake.input.checkpoint, settings)
    cut_points = families.get(settings["family"]).cut_points(model)
    blocks = block_table(snakemake.wildcards.model, model, cut_points, settings["image_size"])
    write_table("blocks", blocks, snakemake.output.blocks)
