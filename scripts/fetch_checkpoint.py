"""Download the checkpoint of a model."""

from pathlib import Path

from scripts._job import job

from vitscope import origins

with job(snakemake):
    wildcards = snakemake.wildcards
    moment = f", snapshot {wildcards.snapshot}" if "snapshot" in wildcards.keys() else ""
    origins.download(
        snakemake.params.checkpoint,
        Path(snakemake.output.checkpoint),
        Path(snakemake.config["locks"][wildcards.study]),
        label=f"{wildcards.model}{moment}",
        say=print,
    )
