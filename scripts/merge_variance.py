"""Merge the shards of one model and join the block table."""

from scripts._job import job

from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.feature_variance.compute import merge

with job(snakemake):
    shards = snakemake.input.shards
    merged = merge(
        (read_table("variance_per_image", shard) for shard in shards),
        **snakemake.params.bootstrap,
    )
    blocks = read_table("blocks", snakemake.input.blocks).drop(columns="parameters")
    write_table(
        "feature_variance",
        blocks.merge(merged, on="index", validate="one_to_one"),
        snakemake.output.variance,
        read_metadata(shards[0]),
    )
