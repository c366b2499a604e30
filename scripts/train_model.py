"""Train a model of a study and keep its weights at moments; go on where one was broken off."""

import json
from pathlib import Path

from scripts._job import job
from vitscope.data.split import Split
from vitscope.networks.device import pick_device
from vitscope.networks.family import find_family
from vitscope.training.loop import train
from vitscope.training.seeding import seeded

with job(snakemake, batches="training.batch_size"):
    network, recipe = snakemake.params.model, snakemake.params.recipe
    with seeded(recipe["seed"]):
        model = find_family(network["family"]).build(
            network["arch"], network["classes"], network["image_size"], len(network["mean"])
        )
    # A folder without snapshots is an output, too.
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
        # Until Snakemake has taken note of what was made; if it has not, this job runs again.
        keep_unfinished=True,
    )
