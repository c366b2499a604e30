"""Verify the checkpoint of a model and write it as safetensors with the model's own keys."""

from pathlib import Path

from scripts._job import job
from vitscope import checkpoints, origins

with job(snakemake):
    entry = snakemake.params.checkpoint
    checkpoints.convert(
        Path(snakemake.input.source),
        snakemake.params.model,
        Path(snakemake.output.checkpoint),
        label=snakemake.params.label,
        origin=origins.described(entry),
        sha256=entry.get("sha256"),
    )
