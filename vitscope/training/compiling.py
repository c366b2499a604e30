"""Compile a network for training, by `torch.compile`, if that saves time or a recipe says so."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import uncompiled
from vitscope.progress import Say
from vitscope.training.batches import seeded
from vitscope.training.recipe import Recipe
from vitscope.training.steps import differentiate_for_step

# The multiply-adds of a training run in which compiling saves as much time as it takes: four
# minutes. On an H100, ViT-Ti (1.67e9 multiply-adds an image) takes 34.8 ms for a step of 250
# images, and 19.1 ms if compiled. This saves 15.7 ms per 3 * 250 * 1.67e9 = 1.25e12 multiply-adds,
# so four minutes per 1.9e16, which take nine minutes uncompiled. ResNet-50 gains less: four minutes
# per 4.4e16.
WORTH_COMPILING = 2e16
CACHE = "TORCHINDUCTOR_CACHE_DIR"


@contextmanager
def compiled(
    model: nn.Module,
    recipe: Recipe,
    image: Tensor,
    *,
    classes: int,
    images: int,
    cache: Path | None,
    say: Say,
) -> Iterator[None]:
    """Compile a model within a `with` block, if the recipe says so or if training is long.

    Training uses `images` images in all; `image` (1, C, H, W) has their shape and is on the device
    of the model. The folder `cache` lets later training runs of the same model start sooner.
    """
    before = model._compiled_call_impl
    try:
        if wants_compiling(model, recipe, image, images):
            if cache is not None:
                os.environ[CACHE] = str(cache.absolute())
            _compile_network(model, recipe, image, classes, say)
        yield
    finally:
        model._compiled_call_impl = before


def running_eagerly(model: nn.Module) -> AbstractContextManager[None]:
    """Run a model uncompiled within a `with` block; do nothing if the model is not compiled."""
    return uncompiled() if model._compiled_call_impl is not None else nullcontext()


def wants_compiling(model: nn.Module, recipe: Recipe, image: Tensor, images: int) -> bool:
    """Tell whether to compile: as the recipe says; if it says auto, for long training on a GPU."""
    if recipe["compile"] == "auto":
        return image.device.type == "cuda" and pays_compiling(model, recipe, image, images)
    return bool(recipe["compile"] == "always")


def pays_compiling(model: nn.Module, recipe: Recipe, image: Tensor, images: int) -> bool:
    """Tell whether compiling saves more time in a training run than compiling takes."""
    passes = 3 if recipe["sam"] is None else 6
    return passes * images * multiply_adds_before_compiling(model, image) > WORTH_COMPILING


def multiply_adds_before_compiling(model: nn.Module, image: Tensor) -> int:
    model.eval()
    with torch.no_grad(), uncompiled(), FlopCounterMode(display=False) as counter:
        model(image)
    # A multiply-add counts as two FLOPs.
    return int(counter.get_total_flops()) // 2


def _compile_network(
    model: nn.Module, recipe: Recipe, image: Tensor, classes: int, say: Say
) -> None:
    say("compiling the network")
    model.compile(dynamic=False, options={"fallback_random": True})
    # Compile by a forward and a backward pass of one batch, and undo the effects of both.
    images = image.repeat(recipe["batch_size"], 1, 1, 1).to(memory_format=torch.channels_last)
    targets = image.new_full((len(images), classes), 1 / classes)
    before = [buffer.clone() for buffer in model.buffers()]
    model.train()
    try:
        with seeded(recipe["seed"]):
            differentiate_for_step(model, images, targets, recipe)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, ImportError, OSError) as error:
        reason = str(error).partition("\n")[0]
        if recipe["compile"] == "always":
            raise VitscopeError(
                f"training.compile is always, and torch.compile cannot compile the "
                f"{type(model).__name__} on this machine ({reason}): set training.compile to auto "
                f"or never."
            ) from error
        say(f"training uncompiled, since torch.compile fails here: {reason}")
        model._compiled_call_impl = None
    model.zero_grad()
    for buffer, kept in zip(model.buffers(), before, strict=True):
        buffer.copy_(kept)
