"""Score the predictions of a model: accuracy, calibration, and the bins of confidence."""

from scripts._job import job

import pandas as pd

from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.classification.compute import reliability, summarized

with job(snakemake):
    predictions = read_table("predictions", snakemake.input.predictions)
    metadata = read_metadata(snakemake.input.predictions)
    scores = summarized(predictions, snakemake.params.classes)
    row = {"model": snakemake.wildcards.model, "images": len(predictions)} | scores
    bins = reliability(predictions).assign(model=snakemake.wildcards.model)
    write_table("classification", pd.DataFrame([row]), snakemake.output.classification, metadata)
    write_table("reliability", bins, snakemake.output.reliability, metadata)
