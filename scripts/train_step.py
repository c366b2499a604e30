"""Train the network that a step of a build-up tries; go on where that was broken off."""

import json
from pathlib import Path

from scripts._job import job
from vitscope.buildup.tried import network_to_try
from vitscope.data.split import Split
from vitscope.networks.device import pick_device
from vitscope.networks.family import find_family
from vitscope.training.loop import train
from vitscope.training.seeding import seeded

with job(snakemake, batches="training.batch_size"):
    recipe, name = snakemake.params.recipe, snakemake.wildcards.buildup
    network = network_to_try(snakemake.input.tried, f"buildups.{name}")
    with seeded(recipe["seed"]):
        model = find_family(network["family"]).build(
            network["arch"], network["classes"], network["image_size"], len(network["mean"])
        )
    Path(snakemake.output.epochs).mkdir(exist_ok=True)
    train(
        model.to(pick_device(snakemake.params.device)),
        Split(snakemake.input.train),
        Split(snakemake.input.test),
        recipe,
        recipe["seed"],
        Path(snakemake.output.end).parent,
        mean=network["mean"],
        std=network["std"],
        made_of={"network": json.dumps(network, sort_keys=True)},
        say=print,
        keep_unfinished=True,
    )
