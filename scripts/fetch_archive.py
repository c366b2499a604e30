"""Download the official archive of a data set."""

from pathlib import Path

from scripts._job import job
from vitscope.data.archives import fetch_archive

with job(snakemake):
    fetch_archive(
        snakemake.params.source,
        Path(snakemake.output.archive),
        label=snakemake.wildcards.dataset,
        say=print,
    )
