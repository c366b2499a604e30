"""Train a model of a study and keep its weights at three moments."""

from pathlib import Path

import pandas as pd

from scripts._job import job
from vitscope.data.split import Split
from vitscope.networks.device import pick_device
from vitscope.networks.family import find_family
from vitscope.training.history import HISTORY
from vitscope.training.loop import train
from vitscope.training.seeding import seeded

with job(snakemake, batches="training.batch_size"):
    network, recipe = snakemake.params.model, snakemake.params.recipe
    with seeded(recipe["seed"]):
        model = find_family(network["family"]).build(
            network["arch"], network["classes"], network["image_size"], len(network["mean"])
        )
    history = train(
        model.to(pick_device(snakemake.params.device)),
        Split(snakemake.input.train),
        Split(snakemake.input.test),
        recipe,
        recipe["seed"],
        Path(snakemake.output.end).parent,
        mean=network["mean"],
        std=network["std"],
        say=print,
    )
    HISTORY.write(pd.DataFrame(history), snakemake.output.history)
