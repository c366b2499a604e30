"""Write the block table of a model."""

from scripts._job import job
from vitscope.networks.block_table import BLOCKS
from vitscope.networks.blocks import list_blocks
from vitscope.networks.empty import empty_network

with job(snakemake):
    network = snakemake.params.model
    name, points = snakemake.wildcards.model, snakemake.params.points
    blocks = list_blocks(name, empty_network(network), network, points)
    BLOCKS.write(blocks.table, snakemake.output.blocks, blocks.metadata())
