"""Measure what a model says of images."""

from scripts._job import job, room
from vitscope.data.split import Split
from vitscope.files.tables import read_metadata
from vitscope.measures.given import OnPredictions
from vitscope.networks.running.prediction_table import PREDICTIONS

with job(snakemake):
    given = OnPredictions(
        snakemake.wildcards.model,
        PREDICTIONS.read(snakemake.input.predictions),
        Split(snakemake.input.images),
    )
    table = room(snakemake, "compute").measure(given, **snakemake.params.settings)
    origin = read_metadata(snakemake.input.predictions)
    room(snakemake, "table").TABLE.write(table, snakemake.output.table, origin)
