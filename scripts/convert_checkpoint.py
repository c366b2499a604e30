"""Verify the checkpoint of a model and write it as safetensors with the model's own keys."""

from pathlib import Path

from scripts._job import job
from vitscope.networks import weight_sources
from vitscope.networks.conversion import convert

with job(snakemake):
    entry, label = snakemake.params.checkpoint, snakemake.params.label
    source = Path(snakemake.input.source)
    lock = Path(snakemake.config["locks"][snakemake.wildcards.study])
    convert(
        source,
        snakemake.params.model,
        Path(snakemake.output.checkpoint),
        label=label,
        origin=weight_sources.described(entry),
        sha256=weight_sources.confirm(entry, source, lock, label=label),
    )
