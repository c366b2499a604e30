"""Merge the band variances of the shards of one model and join the block table."""

from scripts._job import job

from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.spectrum.compute import merge

with job(snakemake):
    shards = snakemake.input.shards
    analysis = snakemake.params.analysis
    merged = merge(
        read_table("blocks", snakemake.input.blocks).drop(columns="parameters"),
        (read_table("band_variance_per_image", shard) for shard in shards),
        analysis["spectrum"]["edges"],
        **analysis["bootstrap"],
    )
    write_table("spectrum", merged, snakemake.output.spectrum, read_metadata(shards[0]))
