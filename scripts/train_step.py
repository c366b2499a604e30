"""Train the network that a step of a build-up tries; go on where that was broken off."""

from pathlib import Path

from scripts._job import job
from vitscope.buildup.tried import network_to_try
from vitscope.networks.running.device import pick_device
from vitscope.training.from_nothing import train_network

with job(snakemake, batches="training.batch_size"):
    name = snakemake.wildcards.buildup
    network = network_to_try(snakemake.input.tried, f"buildups.{name}")
    Path(snakemake.output.epochs).mkdir(exist_ok=True)
    train_network(
        network,
        snakemake.params.recipe,
        snakemake.input.train,
        snakemake.input.test,
        Path(snakemake.output.end).parent,
        pick_device(snakemake.params.device),
    )
