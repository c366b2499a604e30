"""Verify the checkpoint of a model and write it as safetensors with the model's own keys."""

from pathlib import Path

from scripts._job import job
from vitscope.networks.checkpoints import weight_sources
from vitscope.networks.checkpoints.conversion import convert, convert_made

with job(snakemake):
    entry, label = snakemake.params.checkpoint, snakemake.params.label
    network, target = snakemake.params.model, Path(snakemake.output.checkpoint)
    origin = weight_sources.described(entry)
    if "made" in entry:
        convert_made(network, target, label=label, origin=origin)
    else:
        source = Path(snakemake.input.source)
        lock = Path(snakemake.config["locks"][snakemake.wildcards.study])
        convert(
            source,
            network,
            target,
            label=label,
            origin=origin,
            sha256=weight_sources.confirm(entry, source, lock, label=label),
            key=entry.get("key"),
            ignore=entry.get("ignore", ()),
        )
