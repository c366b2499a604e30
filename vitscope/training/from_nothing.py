"""Train a network of a study from nothing, on images that lie in files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from vitscope.data.split import Split
from vitscope.networks.building.family import find_family
from vitscope.training.loop import train
from vitscope.training.recipe import Recipe
from vitscope.training.seeding import seeded


def train_network(
    network: Mapping[str, Any],
    recipe: Recipe,
    train_images: Path | str,
    test_images: Path | str,
    directory: Path,
    device: torch.device,
) -> None:
    """Build a network as a study says it, train it, and write its snapshots and its history.

    What was broken off goes on. The folder `unfinished` stays, for callers who may lose the rest.
    """
    with seeded(recipe["seed"]):
        model = find_family(network["family"]).build(
            network["arch"], network["classes"], network["image_size"], len(network["mean"])
        )
    train(
        model.to(device),
        Split(train_images),
        Split(test_images),
        recipe,
        recipe["seed"],
        directory,
        mean=network["mean"],
        std=network["std"],
        made_of={"network": json.dumps(network, sort_keys=True)},
        say=print,
        keep_unfinished=True,
    )
