"""Measure training and every expensive measurement on a CUDA device, each over plain PyTorch.

Each part is written to the page as soon as it is measured, and `--only` measures one: a device may
be there for minutes.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.images import noise
from bench.rows import Row, as_table
from bench.run import GPU, TARGET, machine, measured_before, page, split_at
from bench.training import recipe_with
from vitscope.files.tensors import TensorWriter
from vitscope.measures.given import OnLoss
from vitscope.measures.hessian_operator import hessian_of_model
from vitscope.measures.landscape.compute import losses_at, pick_landscape_precision
from vitscope.measures.landscape.measure import LandscapeSettings, grid
from vitscope.networks.building.networks import find_family
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.cuda_graphs import own_device_stream
from vitscope.networks.running.device import pick_device
from vitscope.networks.running.extraction import write_latents
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.batches import AugmentedImages, Batches, workers_for_batches
from vitscope.training.compiling import compiled
from vitscope.training.steps import TrainingSteps, optimizer_for_steps

MODELS = ("vit_ti", "resnet_50")
SIDE = 32
DECAY = 0.05
# At most so many times what plain PyTorch takes, and what the operations of a step allow.
EXTRACTION, LANDSCAPE, HESSIAN, TRAINING = 1.15, 1.1, 2.5, 1 / 0.3


class Sizes(NamedTuple):
    """How much is measured: images in all and in a batch, and how often steps are repeated."""

    images: int
    batch: int
    steps: int


FULL, SMALL = Sizes(4096, 256, 50), Sizes(16, 8, 2)


def _network(name: str) -> tuple[nn.Module, dict[str, Any]]:
    settings = load_study(BUNDLED_STUDIES / "paper.yaml").network(name)
    torch.manual_seed(0)
    family = find_family(settings["family"])
    return family.build(settings["arch"], settings["classes"], SIDE).eval(), settings


def _seconds(device: torch.device, action: Callable[[], object]) -> float:
    """Return how long an action takes the second time, all that it began on the device included."""

    def finish() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    action()
    finish()
    start = perf_counter()
    action()
    finish()
    return perf_counter() - start


def _peak(device: torch.device) -> str:
    """Say how much memory of the device was taken at most, and begin to count anew."""
    if device.type != "cuda":
        return ""
    most = torch.cuda.max_memory_allocated(device) / 2**20
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    return f", peak memory {most:.0f} MiB"


def _drawn(path: Path, images: int, classes: int) -> AugmentedImages:
    rng = np.random.default_rng(0)
    shapes = {
        "images": ("F32", (images, 3, SIDE, SIDE)),
        "targets": ("F32", (images, classes)),
    }
    with TensorWriter(path, shapes, {"clean": "False"}) as writer:
        pixels = rng.standard_normal((images, 3, SIDE, SIDE), np.float32)
        writer.write("images", 0, pixels)
        writer.write("targets", 0, rng.dirichlet(np.ones(classes), images).astype(np.float32))
    return AugmentedImages(path)


def _inputs(sizes: Sizes) -> list[Tensor]:
    """Return the images, in batches, on the processor."""
    return list(torch.randn(sizes.images, 3, SIDE, SIDE).split(sizes.batch))


def _forward(model: nn.Module, batches: list[Tensor], device: torch.device) -> None:
    """Run a network on batches that are copied to it, as anyone would."""
    with torch.inference_mode():
        for each in batches:
            model(each.to(device))


def _operations(name: str) -> int:
    """Return the multiply-adds of a forward pass of one image."""
    model, settings = _network(name)
    blocks = list_blocks(name, model, settings)
    return int(blocks.table["operations"].sum()) + blocks.head.operations


def _products(device: torch.device, sizes: Sizes) -> float:
    """Return the multiply-adds a second of a product of large matrices in bfloat16."""
    side = 32 * sizes.batch
    one = torch.randn(side, side, device=device, dtype=torch.bfloat16)

    def multiply() -> None:
        for _ in range(sizes.steps):
            one @ one

    return sizes.steps * side**3 / _seconds(device, multiply)


def measure_machine(name: str, device: torch.device, sizes: Sizes, folder: Path) -> list[Row]:
    """Say that a network runs there at all, and how fast, in either order of channels."""
    model, _ = _network(name)
    rows = []
    for layout in (torch.contiguous_format, torch.channels_last):
        model.to(device, memory_format=layout)  # type: ignore[call-overload]
        inputs = [each.to(memory_format=layout) for each in _inputs(sizes)]
        seconds = _seconds(device, partial(_forward, model, inputs, device))
        what = f"{name}: forward pass" + ", channels last" * (layout == torch.channels_last)
        detail = f"float32, batches of {sizes.batch}{_peak(device)}"
        rows.append(Row(what, sizes.images / seconds, "images/s", None, detail))
    return rows


def measure_batches(name: str, device: torch.device, sizes: Sizes, folder: Path) -> list[Row]:
    """Measure how fast batches come, that processes begin and the device finishes."""
    recipe, workers = recipe_with(batch_size=sizes.batch), workers_for_batches(device)
    count = sizes.batch * sizes.steps
    drawn = Batches(noise(folder / "noise", 10, count), recipe, 0, [0.5] * 3, [0.25] * 3)

    def bring() -> None:
        for _ in drawn.ahead(0, 1, workers, device):
            pass

    seconds = _seconds(device, bring)
    detail = f"{workers} processes, RandAugment, erasing and mixing"
    return [Row(f"{name}: batches", count / seconds, "images/s", None, detail)]


def measure_training(name: str, device: torch.device, sizes: Sizes, folder: Path) -> list[Row]:
    """Measure a step of training over what its operations take at the rate of large products."""
    return [_measure_step(name, device, sizes, "never")]


def measure_compiled(name: str, device: torch.device, sizes: Sizes, folder: Path) -> list[Row]:
    """Measure the same compiled, which takes minutes: not on the processor, for a trial."""
    return [_measure_step(name, device, sizes, "always")] if device.type == "cuda" else []


def _measure_step(name: str, device: torch.device, sizes: Sizes, compiling: str) -> Row:
    model, settings = _network(name)
    recipe = recipe_with(batch_size=sizes.batch, bfloat16=True, compile=compiling)
    model.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    steps = TrainingSteps(model, optimizer_for_steps(model, recipe), recipe)
    images = torch.randn(sizes.batch, 3, SIDE, SIDE)
    targets = torch.rand(sizes.batch, settings["classes"]).softmax(1)

    def train() -> None:
        for _ in range(sizes.steps):
            steps.take(images, targets, 1e-3)

    begun = perf_counter()
    with compiled(
        model,
        recipe,
        images[:1].to(device),
        classes=settings["classes"],
        images=0,
        cache=None,
        say=lambda text: None,
    ):
        until = perf_counter() - begun
        seconds = _seconds(device, train) / sizes.steps
    rate, operations = _products(device, sizes), 3 * sizes.batch * _operations(name)
    detail = f"{1e3 * seconds:.2f} ms for {sizes.batch} images, {rate:.3g} multiply-adds a second"
    detail += f", {until:.0f} s to compile" * (compiling == "always") + _peak(device)
    what = f"{name}: a step over its operations" + ", compiled" * (compiling == "always")
    return Row(what, seconds * rate / operations, "", TRAINING, detail)


def measure_extraction(name: str, device: torch.device, sizes: Sizes, folder: Path) -> list[Row]:
    """Measure the extraction of all cut points over a plain pass."""
    model, settings = _network(name)
    blocks = list_blocks(name, model, settings)
    points, columns = blocks.points, ["channels", "height", "width"]
    shapes = list(blocks.table[columns].itertuples(index=False, name=None))
    inputs, path = _inputs(sizes), folder / name
    model.to(device)

    def whole() -> None:
        write_latents(model, points, shapes, inputs, sizes.images, path, device=device)

    plain = _seconds(device, lambda: _forward(model, inputs, device))
    seconds = _seconds(device, whole)
    detail = f"{sizes.images / seconds:.0f} images a second, {path.stat().st_size / 1e9:.2f} GB"
    path.unlink()
    return [
        Row(
            f"{name}: extraction over a pass",
            seconds / plain,
            "",
            EXTRACTION,
            detail + _peak(device),
        )
    ]


def measure_landscape(name: str, device: torch.device, sizes: Sizes, folder: Path) -> list[Row]:
    """Measure a point of a landscape over a plain pass of the same images in the same type."""
    model, settings = _network(name)
    drawn = _drawn(folder / f"{name}.drawn", sizes.images, settings["classes"])
    points, precision = grid(3, 1.0), pick_landscape_precision("auto", device)

    def measure() -> None:
        given = OnLoss(model, drawn, device, say=lambda text: None)
        losses_at(given, points, LandscapeSettings(batch_size=sizes.batch), DECAY)

    def forward() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            _forward(model, inputs, device)

    inputs = _inputs(sizes)
    seconds = _seconds(device, measure) / len(points)
    plain = _seconds(device, forward)
    detail = f"{1 / seconds:.3g} points a second of {sizes.images} images, {precision}"
    detail += _peak(device)
    return [Row(f"{name}: a point over a pass", seconds / plain, "", LANDSCAPE, detail)]


def measure_hessian(name: str, device: torch.device, sizes: Sizes, folder: Path) -> list[Row]:
    """Measure a product of the Hessian over a pass forward and back."""
    model, settings = _network(name)
    model.to(device)
    images = torch.randn(sizes.batch, 3, SIDE, SIDE, device=device)
    targets = torch.rand(sizes.batch, settings["classes"], device=device).softmax(1)
    hessian = hessian_of_model(model, images, targets, DECAY)
    start = hessian.start(0)
    vector = start.signs(start.chance())

    def multiply() -> None:
        for _ in range(sizes.steps):
            hessian(vector)

    def differentiate() -> None:
        for _ in range(sizes.steps):
            loss = functional.cross_entropy(model(images), targets)
            torch.autograd.grad(loss, list(model.parameters()))

    seconds, plain = _seconds(device, multiply), _seconds(device, differentiate)
    detail = f"{sizes.steps / seconds:.3g} products a second, {sizes.batch} images"
    return [
        Row(
            f"{name}: a product over a gradient",
            seconds / plain,
            "",
            HESSIAN,
            detail + _peak(device),
        )
    ]


# The most important first, for a device that is there for minutes.
PARTS = {
    "machine": measure_machine,
    "training": measure_training,
    "batches": measure_batches,
    "extraction": measure_extraction,
    "landscape": measure_landscape,
    "hessian": measure_hessian,
    "compiled": measure_compiled,
}


def _write(part: str, body: str) -> None:
    """Put a part on the page, beside those that were measured before."""
    sections = measured_before()
    parts = split_at("###", sections.get(GPU, "")) | {part: body}
    listed = [f"### {name}\n\n{parts[name]}" for name in PARTS if name in parts]
    TARGET.write_text(page({**sections, GPU: "\n\n".join(listed)}), encoding="utf-8")


def main() -> None:
    """Measure, and write each part to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="measure one part, keep the others")
    parser.add_argument("--trial", action="store_true", help="little, on any device; not written")
    asked = parser.parse_args()
    if not asked.trial and not torch.cuda.is_available():
        sys.exit("bench-gpu: there is no CUDA device here: run it on a machine that has one.")
    if asked.trial:
        # Several would wait for each other where others are at work.
        torch.set_num_threads(1)
    device = pick_device("auto" if asked.trial else "cuda")
    sizes = SMALL if asked.trial else FULL
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the processor"
    where = f"*{name}, CUDA {torch.version.cuda}; host:* {machine()}"
    for part in [asked.only] if asked.only else PARTS:
        rows = []
        with tempfile.TemporaryDirectory() as place:
            for model in MODELS:
                with own_device_stream(device):
                    rows += PARTS[part](model, device, sizes, Path(place))
        body = "\n".join([where, "", *as_table(rows)])
        print(f"{part}\n{body}", flush=True)
        if not asked.trial:
            _write(part, body)


if __name__ == "__main__":
    main()
