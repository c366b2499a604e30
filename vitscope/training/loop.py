"""Train a small model by the paper's recipe for CIFAR, at a size that a laptop can train."""

import json
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from itertools import islice
from math import isfinite
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import plain_attention
from vitscope.networks.checkpoints.conversion import sha256_of_weights
from vitscope.networks.running.cuda_graphs import own_device_stream
from vitscope.progress import Say, say_on_stderr
from vitscope.training.batches import Batch, Batches, seeded, workers_for_batches
from vitscope.training.compiling import compiled, running_eagerly
from vitscope.training.events import TrainingEvents
from vitscope.training.recipe import Recipe, check_recipe
from vitscope.training.steps import TrainingSteps, learning_rate_of_step, optimizer_for_steps
from vitscope.training.unfinished import Row, Unfinished, state_of

EVALUATION_BATCH = 250


@torch.inference_mode()
def evaluate_in_training(
    model: nn.Module, split: Split, mean: list[float], std: list[float], bfloat16: bool = False
) -> dict[str, float]:
    """Put a model in evaluation mode; return its loss and accuracy on a split, by column."""
    device = next(model.parameters()).device
    labels = torch.tensor(split.labels)
    logits = []
    model.eval()
    with running_eagerly(model):
        for batch in split.batches(range(len(split)), EVALUATION_BATCH, mean, std):
            with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
                logits.append(model(batch.to(device)).float().cpu())
    whole = torch.cat(logits)
    return {
        "test_loss": float(functional.cross_entropy(whole.double(), labels)),
        "test_accuracy": float((whole.argmax(1) == labels).double().mean()),
    }


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
    made_of: Mapping[str, str] | None = None,
    say: Say = say_on_stderr,
    workers: int | None = None,
    keep_unfinished: bool = False,
    compiler_cache: Path | None = None,
) -> list[Row]:
    """Train a model, write its snapshots and its history to `directory`, and return the history.

    Images are augmented by `workers` worker processes; the default depends on the device. On a CPU,
    the same seed and number of threads give the same bytes, with any number of workers.

    An interrupted run resumes after its last complete epoch, if everything that the run depends on
    is unchanged, `made_of` included. The folder for resuming is removed at the end, unless
    `keep_unfinished` is set by a caller who may still lose the results.
    """
    check_recipe(recipe, train_split, test_split)
    facts = {
        "recipe": json.dumps(dict(recipe), sort_keys=True),
        "seed": str(seed),
        "training images": train_split.digest,
        "test images": test_split.digest,
        "first weights": sha256_of_weights(state_of(model)),
        **(made_of or {}),
    }
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = optimizer_for_steps(model, recipe)
    device = next(model.parameters()).device
    on_cpu = device.type == "cpu"
    drawn = Batches(train_split, recipe, seed, mean, std)
    workers = workers_for_batches(device) if workers is None else workers
    at_work = Unfinished(directory, model, optimizer, recipe, facts)
    at_work.begin(say)
    steps = TrainingSteps(model, optimizer, recipe, say)
    image = torch.zeros(1, *train_split.shape, device=device)
    images = drawn.steps * recipe["batch_size"] * recipe["epochs"]
    sizes = {"classes": len(train_split.classes), "images": images}
    compiling = compiled(model, recipe, image, **sizes, cache=compiler_cache, say=say)
    with (
        TrainingEvents(directory, at_work.done) as events,
        plain_attention(model) if on_cpu else nullcontext(),
        own_device_stream(device),
        compiling,
    ):
        batches = drawn.ahead(at_work.done, recipe["epochs"], workers, None if on_cpu else device)
        while at_work.done < recipe["epochs"]:
            at_work.keep_snapshots()
            # Seed the network's own random numbers by a step index that no batch has.
            with seeded(seed, at_work.done, drawn.steps):
                row = _train_epoch(model, steps, recipe, batches, drawn.steps, at_work.done)
            row |= evaluate_in_training(model, test_split, mean, std, recipe["bfloat16"])
            at_work.keep_epoch(row)
            events.write(row)
            say(
                f"epoch {row['epoch']} of {recipe['epochs']}: loss {row['loss']:.3f}, "
                f"accuracy {100 * row['test_accuracy']:.1f} %"
            )
    at_work.finish()
    if not keep_unfinished:
        at_work.remove()
    return at_work.history


def _train_epoch(
    model: nn.Module,
    steps: TrainingSteps,
    recipe: Recipe,
    batches: Iterator[Batch],
    count: int,
    done: int,
) -> Row:
    model.train()
    losses, hits = [], []
    for step, (images, targets) in enumerate(islice(batches, count), start=1):
        rate = learning_rate_of_step(recipe, done + step / count)
        loss, hit = steps.take(images, targets, rate)
        losses.append(loss)
        hits.append(hit)
    mean_loss = float(torch.stack(losses).double().mean())
    if not isfinite(mean_loss):
        raise VitscopeError(
            f"The training diverged in epoch {done + 1}: lower training.learning_rate."
        )
    accuracy = float(torch.stack(hits).double().mean())
    return {
        "epoch": done + 1,
        "loss": mean_loss,
        "training_accuracy": accuracy,
        "learning_rate": rate,
    }
