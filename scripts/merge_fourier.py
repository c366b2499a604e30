"""Merge the shards of one model, of each measure, and join the block table."""

from scripts._job import job

from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.fourier.compute import merge

with job(snakemake):
    paths = {"diagonal": snakemake.input.diagonal, "radial": snakemake.input.radial}
    merged = merge(
        read_table("blocks", snakemake.input.blocks).drop(columns="parameters"),
        {
            measure: (read_table("amplitude_per_image", shard) for shard in shards)
            for measure, shards in paths.items()
            if shards
        },
        **snakemake.params.bootstrap,
    )
    metadata = read_metadata(paths["diagonal"][0])
    write_table("fourier", merged, snakemake.output.fourier, metadata)
