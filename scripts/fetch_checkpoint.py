"""Download the checkpoint of a model."""

from pathlib import Path

from scripts._job import job
from vitscope import origins

with job(snakemake):
    origins.download(
        snakemake.params.checkpoint,
        Path(snakemake.output.checkpoint),
        Path(snakemake.params.lock),
        label=snakemake.params.label,
        say=print,
    )
