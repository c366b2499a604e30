"""Train a small model: the recipe of the paper for CIFAR, at the size of a laptop."""

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.networks.plain_attention import plain_attention
from vitscope.progress import Say, say_on_stderr
from vitscope.training.augmentation import Epoch
from vitscope.training.moments import Moments, Snapshots
from vitscope.training.optimization import learning_rate, optimizer_of, take_step
from vitscope.training.recipe import Recipe, check
from vitscope.training.seeding import seeded
from vitscope.training.snapshots import END, INIT, WARMUP

EVALUATION_BATCH = 250

# What is recorded of an epoch, by the columns of the table `training_history`.
Row = dict[str, Any]


@torch.inference_mode()
def accuracy(model: nn.Module, split: Split, mean: list[float], std: list[float]) -> float:
    """Return the share of images whose class the model, put in evaluation mode, finds."""
    device = next(model.parameters()).device
    model.eval()
    rows = range(len(split))
    found = [
        model(batch.to(device)).argmax(1).cpu()
        for batch in split.batches(rows, EVALUATION_BATCH, mean, std)
    ]
    return float(np.mean(torch.cat(found).numpy() == split.labels))


def train(
    model: nn.Module,
    train_split: Split,
    test_split: Split,
    recipe: Recipe,
    seed: int,
    directory: Path,
    *,
    mean: list[float],
    std: list[float],
    metadata: Mapping[str, str] | None = None,
    say: Say = say_on_stderr,
) -> list[Row]:
    """Train a model, write its snapshots to `directory`, and return one row per epoch.

    The keys of the recipe are those of `training` in a study. The same seed and number of threads
    give the same bytes on a CPU.
    """
    check(recipe, train_split, test_split)
    facts = {"seed": str(seed), "recipe": json.dumps(dict(recipe), sort_keys=True)}
    snapshots = Snapshots(directory, recipe, {**(metadata or {}), **facts})
    moments = Moments(directory) if recipe["trajectory"] else None
    optimizer, epochs = optimizer_of(model, recipe), recipe["epochs"]
    history = []
    with seeded(seed), plain_attention(model):
        batches = Epoch(train_split, recipe, mean, std)
        snapshots.write(model, INIT, 0)
        if moments:
            moments.add(model)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for done in range(epochs):
            if done == recipe["warmup_epochs"]:
                snapshots.write(model, WARMUP, done)
            row = _train_epoch(model, optimizer, recipe, batches, done)
            found = row["test_accuracy"] = accuracy(model, test_split, mean, std)
            history.append(row)
            if moments:
                moments.add(model)
            loss = row["loss"]
            say(f"epoch {done + 1} of {epochs}: loss {loss:.3f}, accuracy {100 * found:.1f} %")
        snapshots.write(model, END, epochs)
    return _with_trajectory(history, moments)


def _train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe, batches: Epoch, done: int
) -> Row:
    """Train for one epoch after `done` others; return its mean loss and last learning rate."""
    model.train()
    device = next(model.parameters()).device
    losses = []
    for step, (images, targets) in enumerate(batches, start=1):
        rate = learning_rate(recipe, done + step / len(batches))
        for group in optimizer.param_groups:
            group["lr"] = rate
        images = images.to(device, memory_format=torch.channels_last)
        losses.append(take_step(model, optimizer, images, targets.to(device), recipe))
    loss = float(np.mean(losses))
    if not isfinite(loss):
        raise VitscopeError(
            f"The training diverged in epoch {done + 1}: lower training.learning_rate."
        )
    return {"epoch": done + 1, "loss": loss, "learning_rate": rate}


def _with_trajectory(history: list[Row], moments: Moments | None) -> list[Row]:
    """Add to each epoch where the weights were, if that was recorded."""
    if moments is None:
        return [row | {"radius": None, "angle": None} for row in history]
    # The first moment is before all epochs.
    points = moments.polar().iloc[1:]
    polar = zip(history, points["radius"], points["angle"], strict=True)
    return [row | {"radius": radius, "angle": angle} for row, radius, angle in polar]
