"""Measure whether a model goes by shape or by texture."""

from scripts._job import job

from vitscope.data.artefact import Split
from vitscope.shape_texture import biases, cues
from vitscope.tables import read_metadata, read_table, write_table

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
