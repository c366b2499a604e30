"""Prepare the images of one split as a file that every job maps into memory."""

from pathlib import Path

from scripts._job import job
from vitscope.data.building import build

with job(snakemake):
    build(
        snakemake.wildcards.dataset,
        snakemake.params.dataset,
        snakemake.wildcards.split,
        Path(snakemake.output.images),
        *map(Path, snakemake.input.source),
    )
