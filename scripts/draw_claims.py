"""Draw which claims of the paper hold, in every format."""

from scripts._job import job
from vitscope.claims.tables import CLAIMS
from vitscope.drawing.saving import save, style
from vitscope.drawing.text import literal
from vitscope.drawing.verdicts import plot

with job(snakemake):
    params = snakemake.params
    labels = {model: literal(label) for model, label in params.labels.items()}
    with style(snakemake.input.style):
        figure = plot(CLAIMS.read(snakemake.input.claims), labels)
        for path in snakemake.output:
            save(figure, path, "claims", {"Study": params.study})
