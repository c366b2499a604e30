"""Draw how accurate the networks of a build-up are, in every format."""

from scripts._job import job
from vitscope.buildup.figure import plot
from vitscope.buildup.published import read_steps
from vitscope.buildup.table import BUILDUP, told_digests
from vitscope.drawing.saving import save, style
from vitscope.drawing.text import literal
from vitscope.files.tables import read_metadata

with job(snakemake):
    inputs, params = snakemake.input, snakemake.params
    facts = dict(params.facts) | told_digests(read_metadata(inputs.table))
    published = [read_steps(path) for path in inputs.published]
    with style(inputs.style):
        figure = plot(BUILDUP.read(inputs.table), literal(params.label), *published)
        for path in snakemake.output:
            save(figure, path, snakemake.wildcards.buildup, facts)
