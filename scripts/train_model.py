"""Train a model of a study and keep its weights at moments; go on where one was broken off."""

from pathlib import Path

from scripts._job import job
from vitscope.networks.running.device import pick_device
from vitscope.training.from_nothing import train_network

with job(snakemake, batches="training.batch_size"):
    # A folder without snapshots is an output, too.
    Path(snakemake.output.epochs).mkdir(exist_ok=True)
    train_network(
        snakemake.params.model,
        snakemake.params.recipe,
        snakemake.input.train,
        snakemake.input.test,
        Path(snakemake.output.end).parent,
        pick_device(snakemake.params.device),
    )
