"""Measure the network of a model as it is, with its weights and without images."""

from scripts._job import job, room
from vitscope.measures.given import OnNetwork
from vitscope.networks.checkpoints.loading import load_model, read_origin

with job(snakemake):
    settings, checkpoint = snakemake.params.model, snakemake.input.checkpoint
    given = OnNetwork(snakemake.wildcards.model, load_model(checkpoint, settings), settings)
    table = room(snakemake, "compute").measure(given, **snakemake.params.settings)
    origin = {"checkpoint_sha256": read_origin(checkpoint)["source_sha256"]}
    room(snakemake, "table").TABLE.write(table, snakemake.output.table, origin)
