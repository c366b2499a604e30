"""Measure whether a model goes by shape or by texture."""

from scripts._job import job

from vitscope.data.split import Split
from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.shape_texture.compute import biases, cues

with job(snakemake):
    predictions = read_table("predictions", snakemake.input.predictions)
    images = Split(snakemake.input.images)
    shape, texture = cues(images, predictions["image"].to_list())
    table = biases(
        predictions["prediction"].to_numpy(),
        shape,
        texture,
        images.classes,
        **snakemake.params.bootstrap,
    )
    write_table(
        "shape_texture",
        table.assign(model=snakemake.wildcards.model),
        snakemake.output.shape_texture,
        read_metadata(snakemake.input.predictions),
    )
