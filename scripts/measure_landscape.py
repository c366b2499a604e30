"""Measure the loss of a model on some rows of a plane through its weights."""

from scripts._job import job

from vitscope.files.tables import write_table
from vitscope.measures.landscape.compute import grid, measure, pick_precision
from vitscope.networks.device import pick_device
from vitscope.networks.loading import load_model, read_origin
from vitscope.training.augmented import Augmented

with job(snakemake, batches="analysis.landscape.batch_size"):
    settings = dict(snakemake.params.landscape)
    points = grid(settings.pop("points"), settings.pop("radius"), range(*snakemake.params.rows))
    device = pick_device(snakemake.params.device)
    precision = pick_precision(settings.pop("precision"), device)
    images = Augmented(snakemake.input.images)
    model = load_model(snakemake.input.checkpoint, snakemake.params.model)
    digest = read_origin(snakemake.input.checkpoint)["source_sha256"]
    table = measure(model, images, points, device=device, precision=precision, **settings)
    write_table(
        "landscape",
        table.assign(model=snakemake.wildcards.model),
        snakemake.output.landscape,
        {"data_sha256": images.metadata["data_sha256"], "checkpoint_sha256": digest},
    )
