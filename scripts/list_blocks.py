"""Write the block table of a model."""

from scripts._job import job
from vitscope.networks.building.empty import empty_network
from vitscope.networks.finding.block_table import BLOCKS
from vitscope.networks.finding.blocks import list_blocks

with job(snakemake):
    network = snakemake.params.model
    name, points = snakemake.wildcards.model, snakemake.params.points
    blocks = list_blocks(name, empty_network(network), network, points)
    BLOCKS.write(blocks.table, snakemake.output.blocks, blocks.metadata())
