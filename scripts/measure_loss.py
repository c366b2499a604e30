"""Measure the loss of a model on augmented images of its training, at a moment of it."""

from scripts._job import job, room
from vitscope.measures.given import OnLoss
from vitscope.networks.checkpoints.loading import load_model, read_origin
from vitscope.networks.running.device import pick_device
from vitscope.training.augmented import Augmented
from vitscope.training.snapshots import END

with job(snakemake, batches=snakemake.params.batches):
    model, snapshot = snakemake.wildcards.model, snakemake.wildcards.snapshot
    weights = snakemake.input.checkpoint
    images = Augmented(snakemake.input.images)
    given = OnLoss(
        network=load_model(weights, snakemake.params.model),
        images=images,
        device=pick_device(snakemake.params.device),
    )
    table = room(snakemake, "compute").measure(given, **snakemake.params.settings)
    columns = room(snakemake, "table").TABLE
    what = "checkpoint" if snapshot == END else f"snapshot {snapshot}"
    columns.write(
        columns.named(table, model=model, snapshot=snapshot),
        snakemake.output.part,
        {
            "data_sha256": images.metadata["data_sha256"],
            f"{what}_sha256": read_origin(weights)["source_sha256"],
        },
    )
