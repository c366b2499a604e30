"""Classify the images of a split by a model."""

from scripts._job import job
from vitscope.data.image_rows import known_labels, rows_to_classify
from vitscope.data.split import Split
from vitscope.files.tables import warned
from vitscope.networks.device import pick_device
from vitscope.networks.label_doubts import told_of
from vitscope.networks.loading import load_model, read_origin
from vitscope.networks.prediction_table import PREDICTIONS
from vitscope.networks.predictions import predict

with job(snakemake, batches="analysis.batch_size"):
    settings = snakemake.params.model
    images = Split(snakemake.input.images)
    rows = rows_to_classify(images, **snakemake.params.selection)
    labels = known_labels(images, rows)
    model = load_model(snakemake.input.checkpoint, settings)
    digest = read_origin(snakemake.input.checkpoint)["source_sha256"]
    batches = images.batches(rows, snakemake.params.batch_size, settings["mean"], settings["std"])
    predictions = predict(model, batches, labels, pick_device(snakemake.params.device))
    warnings = []
    if snakemake.params.labels_are_truth:
        warnings = told_of(snakemake.wildcards.model, images, predictions)
    PREDICTIONS.write(
        predictions.assign(image=rows),
        snakemake.output.predictions,
        {"data_sha256": images.digest, "checkpoint_sha256": digest} | warned(warnings),
    )
