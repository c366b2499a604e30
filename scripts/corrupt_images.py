"""Write the images of a split under one corruption, at all severities."""

from pathlib import Path

from scripts._job import job
from vitscope.corruptions.building import build
from vitscope.data.split import Split

with job(snakemake):
    settings = snakemake.params.robustness
    build(
        Split(snakemake.input.images),
        settings["images"],
        snakemake.wildcards.corruption,
        settings["severities"],
        snakemake.params.seed,
        snakemake.output.images,
        *map(Path, snakemake.input.official),
    )
