"""Verify the checkpoint of a model and write it as safetensors with the model's own keys."""

from pathlib import Path

from scripts._job import job

from vitscope.networks import checkpoints
from vitscope.networks import weight_sources as origins

with job(snakemake):
    entry, label = snakemake.params.checkpoint, snakemake.params.label
    source = Path(snakemake.input.source)
    lock = Path(snakemake.config["locks"][snakemake.wildcards.study])
    checkpoints.convert(
        source,
        snakemake.params.model,
        Path(snakemake.output.checkpoint),
        label=label,
        origin=origins.described(entry),
        sha256=origins.confirm(entry, source, lock, label=label),
    )
