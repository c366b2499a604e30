"""Write the block table of a model."""

from scripts._job import job
from vitscope.networks.block_table import BLOCKS, head_metadata
from vitscope.networks.blocks import list_blocks
from vitscope.networks.empty import empty_network
from vitscope.networks.family import find_family

with job(snakemake):
    network = snakemake.params.model
    model = empty_network(network)
    cut_points = find_family(network["family"]).cut_points(model)
    blocks = list_blocks(snakemake.wildcards.model, model, cut_points, network["image_size"])
    BLOCKS.write(blocks.table, snakemake.output.blocks, head_metadata(blocks.head))
