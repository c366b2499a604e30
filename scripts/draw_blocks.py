"""Draw a network as the row of its cut points, in every format."""

from scripts._job import job
from vitscope.drawing.network import plot
from vitscope.drawing.saving import save, style
from vitscope.drawing.text import literal
from vitscope.networks.finding.block_table import BLOCKS

with job(snakemake):
    params, wildcards = snakemake.params, snakemake.wildcards
    blocks = BLOCKS.read(snakemake.input.blocks)
    with style(snakemake.input.style):
        figure = plot(blocks, literal(params.label))
        for path in snakemake.output:
            save(figure, path, f"blocks of {wildcards.model}", {"Study": params.study})
