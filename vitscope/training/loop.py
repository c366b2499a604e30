"""Train a small model: the recipe of the paper for CIFAR, at the size of a laptop."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from vitscope.data.split import Split, normalized
from vitscope.errors import VitscopeError
from vitscope.networks.plain_attention import plain_attention
from vitscope.progress import Say, say_on_stderr
from vitscope.training.augmentation import augmentation, batches, erasing, mixing
from vitscope.training.moments import Moments, Snapshots
from vitscope.training.optimization import learning_rate, optimizer_of, take_step
from vitscope.training.recipe import Recipe, check, training_rows
from vitscope.training.seeding import seeded
from vitscope.training.snapshots import END, INIT, WARMUP

EVALUATION_BATCH = 250


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


def _epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    drawn: Iterable[tuple[Tensor, Tensor]],
    rate_after: Callable[[int], float],
) -> tuple[float, float]:
    """Go through the batches of an epoch; return the mean loss and the last learning rate."""
    model.train()
    device = next(model.parameters()).device
    losses = []
    for step, (images, targets) in enumerate(drawn):
        rate = rate_after(step + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        images = images.to(device, memory_format=torch.channels_last)
        losses.append(take_step(model, optimizer, images, targets.to(device), recipe))
    return float(np.mean(losses)), rate


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
) -> list[dict[str, float | None]]:
    """Train a model, write its snapshots to `directory`, and return one row per epoch.

    The keys of the recipe are those of `training` in a study. The same seed and number of threads
    give the same bytes on a CPU.
    """
    check(recipe, train_split, test_split)
    rows, epochs = training_rows(train_split, recipe), recipe["epochs"]
    steps = len(rows) // recipe["batch_size"]
    optimizer = optimizer_of(model, recipe)
    facts = {"seed": str(seed), "recipe": json.dumps(dict(recipe), sort_keys=True)}
    snapshots = Snapshots(directory, recipe, {**(metadata or {}), **facts})
    moments = Moments(directory) if recipe["trajectory"] else None
    history: list[dict[str, float | None]] = []
    with seeded(seed), plain_attention(model):
        augment = augmentation(recipe, mean)
        mix, erase = mixing(recipe, len(train_split.classes)), erasing(recipe)

        def drawn() -> Iterator[tuple[Tensor, Tensor]]:
            for pixels, labels in batches(train_split, rows, recipe["batch_size"], augment):
                yield mix(erase(normalized(pixels, mean, std)), torch.tensor(labels))

        snapshots.write(model, INIT, 0)
        if moments:
            moments.add(model)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for epoch in range(epochs):
            if epoch == recipe["warmup_epochs"]:
                snapshots.write(model, WARMUP, epoch)
            rate_after = partial(_rate_within, recipe, epoch, steps)
            loss, rate = _epoch(model, optimizer, recipe, drawn(), rate_after)
            if not isfinite(loss):
                raise VitscopeError(
                    f"The training diverged in epoch {epoch + 1}: lower training.learning_rate."
                )
            found = accuracy(model, test_split, mean, std)
            row: dict[str, float | None] = {"epoch": epoch + 1, "loss": loss, "learning_rate": rate}
            history.append(row | {"test_accuracy": found, "radius": None, "angle": None})
            if moments:
                moments.add(model)
            say(f"epoch {epoch + 1} of {epochs}: loss {loss:.3f}, accuracy {100 * found:.1f} %")
        snapshots.write(model, END, epochs)
    if moments:
        points = moments.polar()[["radius", "angle"]].iloc[1:]
        for row, (radius, angle) in zip(history, points.to_numpy().tolist(), strict=True):
            row |= {"radius": radius, "angle": angle}
    return history


def _rate_within(recipe: Recipe, epoch: int, steps: int, step: int) -> float:
    return learning_rate(recipe, epoch + step / steps)
