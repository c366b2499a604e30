"""Download the checkpoint of a model."""

from pathlib import Path

from scripts._job import job
from vitscope.networks.checkpoints.weight_download import download

with job(snakemake):
    wildcards = snakemake.wildcards
    snapshot = wildcards.get("snapshot")
    moment = f", snapshot {snapshot}" if snapshot else ""
    download(
        snakemake.params.checkpoint,
        Path(snakemake.output.checkpoint),
        Path(snakemake.config["locks"][wildcards.study]),
        label=f"{wildcards.model}{moment}",
        say=print,
    )
