"""Classify the images of a split by a model."""

from scripts._job import job
from vitscope.data.split import Split
from vitscope.files.tables import warned
from vitscope.networks.checkpoints.loading import load_model, read_origin
from vitscope.networks.running.classifying import classify
from vitscope.networks.running.device import pick_device
from vitscope.networks.running.prediction_table import PREDICTIONS

with job(snakemake, batches="analysis.batch_size"):
    settings, checkpoint = snakemake.params.model, snakemake.input.checkpoint
    images = Split(snakemake.input.images)
    predictions, warnings = classify(
        snakemake.wildcards.model,
        load_model(checkpoint, settings),
        images,
        settings=settings,
        selection=snakemake.params.selection,
        batch_size=snakemake.params.batch_size,
        device=pick_device(snakemake.params.device),
        labels_are_truth=snakemake.params.labels_are_truth,
    )
    digests = {
        "data_sha256": images.digest,
        "checkpoint_sha256": read_origin(checkpoint)["source_sha256"],
    }
    PREDICTIONS.write(predictions, snakemake.output.predictions, digests | warned(warnings))
