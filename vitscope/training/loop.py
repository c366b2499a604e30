"""Train a small model: the recipe of the paper for CIFAR, at the size of a laptop."""

import json
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import cos, isfinite, pi
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from vitscope.data.split import UNKNOWN_LABEL, Split, normalized, select
from vitscope.errors import VitscopeError
from vitscope.measures.trajectory.compute import polar
from vitscope.networks.checkpoints import write_weights
from vitscope.networks.timm_import import import_timm
from vitscope.progress import Say, say_on_stderr

Pixels = npt.NDArray[np.uint8]
Augment = Callable[[Pixels], Pixels]
Recipe = Mapping[str, Any]

EVALUATION_BATCH = 250


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed every generator that training draws from, and put them back afterwards."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (timm draws from the global generators)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(legacy)  # noqa: NPY002


@contextmanager
def plain_attention(model: nn.Module) -> Iterator[None]:
    """Switch off fused attention: its backward pass is slow on a CPU, and itself has none."""
    fused = [module for module in model.modules() if getattr(module, "fused_attn", False)]
    for module in fused:
        module.fused_attn = False  # type: ignore[assignment]
    try:
        yield
    finally:
        for module in fused:
            module.fused_attn = True  # type: ignore[assignment]


def learning_rate(recipe: Recipe, progress: float) -> float:
    """Return the learning rate after `progress` epochs: linear warm-up, then a half cosine."""
    peak, last = recipe["learning_rate"], recipe["final_learning_rate"]
    warmup, epochs = recipe["warmup_epochs"], recipe["epochs"]
    if progress < warmup:
        return float(peak * progress / warmup)
    share = (progress - warmup) / (epochs - warmup)
    return float(last + (peak - last) * (1 + cos(pi * share)) / 2)


def augmentation(recipe: Recipe, mean: list[float]) -> Augment:
    """Return what is done to each image, (H, W, 3): shift, flip, RandAugment."""
    policy = None
    if recipe["randaugment"]:
        auto_augment = import_timm("timm.data.auto_augment")
        fill = tuple(round(255 * value) for value in mean)
        try:
            options = {"img_mean": fill}
            policy = auto_augment.rand_augment_transform(recipe["randaugment"], options)
        except (AssertionError, ValueError, IndexError, KeyError) as error:
            raise VitscopeError(
                f"training.randaugment is {recipe['randaugment']!r}, which timm does not "
                f"understand: write it like rand-m9-n2-mstd0.5, or null for none."
            ) from error
    shift = recipe["shift"]

    def augment(pixels: Pixels) -> Pixels:
        if shift:
            height, width, _ = pixels.shape
            top, left = random.randint(0, 2 * shift), random.randint(0, 2 * shift)
            padded = np.pad(pixels, ((shift, shift), (shift, shift), (0, 0)), mode="reflect")
            pixels = padded[top : top + height, left : left + width]
        if recipe["flip"] and random.random() < 0.5:
            pixels = pixels[:, ::-1]
        if policy is not None:
            image = Image.fromarray(np.ascontiguousarray(pixels))
            pixels = np.asarray(policy(image))
        return pixels

    return augment


def training_rows(split: Split, recipe: Recipe) -> npt.NDArray[np.int64]:
    """Return the rows of a training split that the recipe trains on."""
    return select(len(split), recipe["images"], recipe["seed"])


def batches(
    split: Split, rows: npt.NDArray[np.int64], batch_size: int, augment: Augment
) -> Iterator[tuple[Pixels, npt.NDArray[np.int64]]]:
    """Yield one epoch of augmented images in a random order; what fills no batch is left out."""
    order = rows[torch.randperm(len(rows)).numpy()]
    for first in range(0, len(order) - batch_size + 1, batch_size):
        chosen = order[first : first + batch_size]
        images = split.images(chosen).transpose(0, 2, 3, 1)
        augmented = np.stack([augment(image) for image in images])
        yield augmented.transpose(0, 3, 1, 2), split.labels[chosen]


def mixing(recipe: Recipe, classes: int) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return what blends the images of a batch and makes targets of their labels."""
    smoothing = recipe["label_smoothing"]
    if recipe["mixup"] or recipe["cutmix"]:
        mixup: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = import_timm("timm.data").Mixup(
            mixup_alpha=recipe["mixup"],
            cutmix_alpha=recipe["cutmix"],
            prob=recipe["mixing_probability"],
            label_smoothing=smoothing,
            num_classes=classes,
        )
        return mixup

    def smoothed(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        hot = functional.one_hot(labels, classes).float()
        return images, hot * (1 - smoothing) + smoothing / classes

    return smoothed


def erasing(recipe: Recipe) -> Callable[[Tensor], Tensor]:
    """Return what fills a random rectangle of some normalized images with noise."""
    share = recipe["erasing"]
    if not share:
        return lambda images: images
    erase: Callable[[Tensor], Tensor] = import_timm("timm.data.random_erasing").RandomErasing(
        share, mode="pixel", device="cpu"
    )
    return erase


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


def _check(recipe: Recipe, train_split: Split, test_split: Split) -> None:
    """Refuse what cannot be trained, before time is spent on it."""
    for split in (train_split, test_split):
        if UNKNOWN_LABEL in split.labels:
            raise VitscopeError(
                f"The split {split.metadata['split']} of {split.metadata['dataset']} has images "
                f"without labels: train on a data set that has them."
            )
    there, batch, epochs = len(train_split), recipe["batch_size"], recipe["epochs"]
    wanted = recipe["images"]
    if wanted is not None and wanted > there:
        raise VitscopeError(
            f"training.images is {wanted} and the training split has {there} images: lower it."
        )
    images = there if wanted is None else wanted
    if batch > images:
        raise VitscopeError(
            f"training.batch_size is {batch} and there are {images} images to train on: lower it."
        )
    if batch % 2 and (recipe["mixup"] or recipe["cutmix"]):
        raise VitscopeError(
            f"training.batch_size is {batch}, and mixup and CutMix need an even one: change it."
        )
    if recipe["warmup_epochs"] >= epochs:
        raise VitscopeError(
            f"training.warmup_epochs is {recipe['warmup_epochs']} of {epochs} epochs: leave at "
            f"least one epoch after the warm-up."
        )


def decaying(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the parameters in groups of an optimizer: biases and norms do not decay."""
    groups: list[dict[str, Any]] = import_timm("timm.optim").param_groups_weight_decay(
        model, weight_decay
    )
    return groups


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return AdamW that decays matrices and kernels, and neither biases nor norms."""
    return torch.optim.AdamW(decaying(model, recipe["weight_decay"]), lr=0.0)


def _step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    images: Tensor,
    targets: Tensor,
    recipe: Recipe,
) -> float:
    """Take one step and return the loss before it."""
    with torch.autocast(images.device.type, torch.bfloat16, enabled=recipe["bfloat16"]):
        logits = model(images)
    loss = functional.cross_entropy(logits.float(), targets)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), recipe["clip_gradient"])
    optimizer.step()
    return loss.item()


def write_snapshot(
    model: nn.Module, path: Path, dtype: torch.dtype, metadata: Mapping[str, str]
) -> None:
    """Write the weights of a model, floating-point ones in the given precision."""
    weights = {
        name: tensor.detach().to("cpu", dtype if tensor.is_floating_point() else None)
        for name, tensor in model.state_dict().items()
    }
    write_weights(path, weights, metadata)


class _Moments:
    """The parameters of a model at every epoch, in a file that vanishes with its last reader."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (it outlives this call)
        self._size = 0

    def add(self, model: nn.Module) -> None:
        """Keep the parameters as they are now, one after another in float32."""
        # Parameters in another memory format have no flat view: they are copied in their order.
        flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
        raw = flat.to("cpu", torch.float32).numpy()
        self._size = raw.size
        self._file.write(raw.tobytes())

    def polar(self) -> pd.DataFrame:
        """Return the trajectory from the first moment to the last."""
        self._file.flush()
        kept = np.memmap(self._file, np.float32, "r").reshape(-1, self._size)
        return polar(list(kept))


@dataclass(frozen=True)
class _Snapshots:
    """Writes the weights of a model at moments of its training."""

    directory: Path
    recipe: Recipe
    facts: Mapping[str, str]

    def write(self, model: nn.Module, name: str, epoch: int) -> None:
        facts = {**self.facts, "snapshot": name, "epoch": str(epoch)}
        dtype = getattr(torch, self.recipe["snapshot_dtype"])
        write_snapshot(model, self.directory / f"{name}.safetensors", dtype, facts)


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
        losses.append(_step(model, optimizer, images, targets.to(device), recipe))
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
    _check(recipe, train_split, test_split)
    rows, epochs = training_rows(train_split, recipe), recipe["epochs"]
    steps = len(rows) // recipe["batch_size"]
    optimizer = _optimizer(model, recipe)
    told = {"seed": str(seed), "recipe": json.dumps(dict(recipe), sort_keys=True)}
    snapshots = _Snapshots(directory, recipe, {**(metadata or {}), **told})
    moments = _Moments(directory) if recipe["trajectory"] else None
    history: list[dict[str, float | None]] = []
    with seeded(seed), plain_attention(model):
        augment = augmentation(recipe, mean)
        mix, erase = mixing(recipe, len(train_split.classes)), erasing(recipe)

        def drawn() -> Iterator[tuple[Tensor, Tensor]]:
            for pixels, labels in batches(train_split, rows, recipe["batch_size"], augment):
                yield mix(erase(normalized(pixels, mean, std)), torch.tensor(labels))

        snapshots.write(model, "init", 0)
        if moments:
            moments.add(model)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        for epoch in range(epochs):
            if epoch == recipe["warmup_epochs"]:
                snapshots.write(model, "warmup", epoch)
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
        snapshots.write(model, "end", epochs)
    if moments:
        points = moments.polar()[["radius", "angle"]].iloc[1:]
        for row, (radius, angle) in zip(history, points.to_numpy().tolist(), strict=True):
            row |= {"radius": radius, "angle": angle}
    return history


def _rate_within(recipe: Recipe, epoch: int, steps: int, step: int) -> float:
    return learning_rate(recipe, epoch + step / steps)
