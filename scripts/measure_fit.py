"""Measure the loss of a model on augmented training images, beside its error on test images."""

from scripts._job import job

from vitscope.files.tables import read_metadata, read_table, write_table
from vitscope.measures.fit.compute import fit_table, training_losses
from vitscope.networks.device import pick_device
from vitscope.networks.loading import load_model
from vitscope.training.augmented import Augmented

with job(snakemake, batches="analysis.batch_size"):
    params = snakemake.params
    images = Augmented(snakemake.input.images)
    predictions = read_table("predictions", snakemake.input.predictions)
    model = load_model(snakemake.input.checkpoint, params.model)
    batches = images.batches(params.analysis["batch_size"])
    losses = training_losses(model, batches, pick_device(params.device))
    table = fit_table(predictions, losses, **params.analysis["bootstrap"])
    write_table(
        "fit",
        table.assign(model=snakemake.wildcards.model),
        snakemake.output.fit,
        read_metadata(snakemake.input.predictions)
        | {"training_sha256": images.metadata["data_sha256"]},
    )
