"""A step of training against its forward pass, backward pass and optimizer alone."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch

from bench.images import noise
from bench.rows import Row
from vitscope.networks.building.networks import find_family, plain_attention
from vitscope.settings.keys import Recipe
from vitscope.settings.section import schema_of_section
from vitscope.training.batches import Batch, Batches, workers_for_batches
from vitscope.training.steps import optimizer_for_steps, take_step

CLASSES, BATCH, TURNS, STEPS = 100, 125, 9, 12
ARCH = {
    "patch_size": 4,
    "embed_dim": 64,
    "depth": 6,
    "num_heads": 2,
    "mlp_ratio": 4,
    "qkv_bias": False,
}
# At most 15 % of a step is something else than the network and its optimizer.
BOUND = 1 / 0.85


def recipe_with(**changes: Any) -> dict[str, Any]:
    """Return the recipe that a study has by default, with all that augments."""
    keys = schema_of_section(Recipe)["properties"]
    defaults = {key: schema["default"] for key, schema in keys.items() if "default" in schema}
    return defaults | {"batch_size": BATCH, "erasing": 0.25} | changes


class _Bench:
    """A ViT of 0.3 million parameters that is trained on 32x32 images."""

    def __init__(self, batches: Batches, recipe: dict[str, Any]) -> None:
        torch.manual_seed(0)
        self._model = find_family("vit").build(ARCH, CLASSES, 32).train()
        self._model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._optimizer, self._recipe = optimizer_for_steps(self._model, recipe), recipe
        self.ready = batches.draw(0, 0)

    def seconds(self, batches: Iterator[Batch]) -> float:
        """Return the seconds of a step, of some."""
        with plain_attention(self._model):
            start = perf_counter()
            for _ in range(STEPS):
                images, targets = next(batches)
                images = images.to(memory_format=torch.channels_last)
                take_step(self._model, self._optimizer, images, targets, self._recipe)
            return (perf_counter() - start) / STEPS

    def alone(self) -> float:
        """Return the seconds of a step on images that are there."""
        return self.seconds(iter([self.ready] * STEPS))


def _turns(folder: Path, threads: int, recipe: dict[str, Any]) -> list[tuple[float, ...]]:
    """Return the seconds of a step alone, and augmented by this process or another, in turns."""
    torch.set_num_threads(threads)
    split = noise(folder / f"{threads}", CLASSES, BATCH * (TURNS + 1) * STEPS)
    batches = Batches(split, recipe, 0, [0.5] * 3, [0.25] * 3)
    bench = _Bench(batches, recipe)
    here, ahead = (batches.ahead(0, 1, workers) for workers in (0, 1))
    bench.seconds(ahead)
    return [(bench.alone(), bench.seconds(here), bench.seconds(ahead)) for _ in range(TURNS)]


def _rows(folder: Path, threads: int) -> list[Row]:
    turns = _turns(folder, threads, recipe_with())
    alone, *others = (median(column) for column in zip(*turns, strict=True))
    what = "1 thread" if threads == 1 else f"{threads} threads"
    chosen = workers_for_batches(torch.device("cpu"))
    return [
        Row(
            f"{what}: a step of training over the network and its optimizer, augmented by {who}",
            median(turn[1 + workers] / turn[0] for turn in turns),
            "times",
            BOUND if workers == chosen else None,
            f"bfloat16, {BATCH} images: {1000 * alone:.0f} ms alone, "
            f"{1000 * others[workers]:.0f} ms with augmentation"
            + (", as `train_model` does it here" if workers == chosen else ""),
        )
        for workers, who in enumerate(("the same process", "another"))
    ]


def _precision(folder: Path) -> Row:
    recipes = [recipe_with(bfloat16=value) for value in (True, False)]
    split = noise(folder / "precision", CLASSES, BATCH)
    benches = [_Bench(Batches(split, r, 0, [0.5] * 3, [0.25] * 3), r) for r in recipes]
    turns = [tuple(bench.alone() for bench in benches) for _ in range(TURNS)]
    short, full = (1000 * median(column) for column in zip(*turns, strict=True))
    return Row(
        "1 thread: a step in bfloat16 over one in float32",
        median(a / b for a, b in turns),
        "times",
        detail=f"{short:.0f} ms, {full:.0f} ms",
    )


def measure() -> list[Row]:
    """Compare steps on batches that are drawn with steps on one that is there."""
    before = torch.get_num_threads()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            rows = [row for n in sorted({before, 1}) for row in _rows(folder, n)]
            torch.set_num_threads(1)
            return [*rows, _precision(folder)]
    finally:
        torch.set_num_threads(before)
