"""Download the official archive of a data set."""

from pathlib import Path

from scripts._job import job
from vitscope.data.downloading import download

with job(snakemake):
    download(
        snakemake.params.archive,
        snakemake.params.source,
        Path(snakemake.output.archive),
        label=snakemake.wildcards.dataset,
        say=print,
    )
