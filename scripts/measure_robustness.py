"""Classify the images of some corruptions with a model, and first of all images as they are."""

from scripts._job import job

import pandas as pd

from vitscope.corruptions.corrupted import Corrupted
from vitscope.data.split import Split
from vitscope.files.tables import write_table
from vitscope.measures.robustness.compute import clean_view, corrupted_views, scored
from vitscope.networks.device import pick_device
from vitscope.networks.image_rows import known_labels
from vitscope.networks.loading import load_model, read_origin
from vitscope.networks.predictions import predict

with job(snakemake, batches="analysis.batch_size"):
    settings = snakemake.params.model
    model = load_model(snakemake.input.checkpoint, settings)
    device = pick_device(snakemake.params.device)
    images = Split(snakemake.input.images)
    corrupted = [Corrupted(path) for path in snakemake.input.corrupted]
    rows = corrupted[0].rows.tolist()
    labels = known_labels(images, rows)
    reading = (snakemake.params.analysis["batch_size"], settings["mean"], settings["std"])
    views = [view for each in corrupted for view in corrupted_views(each, *reading)]
    if snakemake.wildcards.part == "0":
        views.insert(0, clean_view(images, rows, *reading))
    name, classes = snakemake.wildcards.model, settings["classes"]
    table = pd.concat(
        scored(name, view, predict(model, view.batches, labels, device), classes) for view in views
    )
    digest = read_origin(snakemake.input.checkpoint)["source_sha256"]
    origin = {"data_sha256": images.digest, "checkpoint_sha256": digest}
    write_table("robustness", table, snakemake.output.robustness, origin)
