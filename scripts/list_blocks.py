"""Write the block table of a model."""

from scripts._job import job

from vitscope.networks.block_table import BLOCKS
from vitscope.networks.blocks import block_table
from vitscope.networks.family import find_family
from vitscope.networks.loading import load_model

with job(snakemake):
    settings = snakemake.params.model
    model = load_model(snakemake.input.checkpoint, settings)
    cut_points = find_family(settings["family"]).cut_points(model)
    blocks = block_table(snakemake.wildcards.model, model, cut_points, settings["image_size"])
    write_table("blocks", blocks, snakemake.output.blocks)
