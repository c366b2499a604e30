"""Measure what noise of one frequency costs a model in accuracy."""

from scripts._job import job

from vitscope.data.split import Split
from vitscope.files.tables import write_table
from vitscope.measures.frequency_noise.compute import measure, noise_table
from vitscope.networks.device import pick_device
from vitscope.networks.image_rows import known_labels, rows_to_classify
from vitscope.networks.loading import load_model, read_origin

with job(snakemake, batches="analysis.batch_size"):
    settings, noise = snakemake.params.model, snakemake.params.noise
    images = Split(snakemake.input.images)
    rows = rows_to_classify(images, noise["images"], noise["seed"])
    labels = known_labels(images, rows)
    model = load_model(snakemake.input.checkpoint, settings)
    digest = read_origin(snakemake.input.checkpoint)["source_sha256"]
    batches = images.batches(rows, noise["batch_size"], settings["mean"], settings["std"])
    clean, shares = measure(
        model, batches, rows, labels, noise, pick_device(snakemake.params.device)
    )
    table = noise_table(
        snakemake.wildcards.model,
        clean,
        shares,
        noise,
        settings["image_size"],
        snakemake.params.bootstrap,
    )
    metadata = {"data_sha256": images.digest, "checkpoint_sha256": digest}
    write_table("frequency_noise", table, snakemake.output.noise, metadata)
