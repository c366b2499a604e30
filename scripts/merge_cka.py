"""Merge the shards of one model to its CKA."""

from scripts._job import job

from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.cka.compute import merge

with job(snakemake):
    shards = snakemake.input.shards
    merged = merge(
        snakemake.wildcards.model, (read_table("cka_per_shard", shard) for shard in shards)
    )
    write_table("cka", merged, snakemake.output.cka, read_metadata(shards[0]))
