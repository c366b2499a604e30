"""Measure extraction, landscape and Hessian on a CUDA device; write the GPU part of the page.

Absolute numbers, with the name of the device: there is nothing to compare them with in turns.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.rows import Row, as_table
from bench.run import GPU, TARGET, machine, measured_before, page
from vitscope.files.tensors import TensorWriter
from vitscope.measures.hessian.operator import of_model
from vitscope.measures.landscape.compute import grid, losses_at, pick_precision
from vitscope.networks.building.family import find_family
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.device import pick_device
from vitscope.networks.running.latents import extract
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.augmented import Augmented

MODELS = ("vit_ti", "resnet_50")
SIDE = 32
DECAY = 0.05


def _network(name: str) -> tuple[nn.Module, dict[str, Any]]:
    settings = load_study(BUNDLED_STUDIES / "paper.yaml").network(name)
    torch.manual_seed(0)
    family = find_family(settings["family"])
    return family.build(settings["arch"], settings["classes"], SIDE).eval(), settings


def _seconds(device: torch.device, action: Callable[[], object]) -> float:
    """Return how long an action takes, all that it began on the device included."""

    def finish() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    finish()
    start = perf_counter()
    action()
    finish()
    return perf_counter() - start


def _peak(device: torch.device, action: Callable[[], object]) -> str:
    """Run an action; say how much memory of the device it took at most."""
    if device.type != "cuda":
        action()
        return ""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    action()
    return f", peak memory {torch.cuda.max_memory_allocated(device) / 2**20:.0f} MiB"


def _drawn(path: Path, images: int, classes: int) -> Augmented:
    rng = np.random.default_rng(0)
    shapes = {
        "images": ("F32", (images, 3, SIDE, SIDE)),
        "targets": ("F32", (images, classes)),
    }
    with TensorWriter(path, shapes, {"clean": "False"}) as writer:
        pixels = rng.standard_normal((images, 3, SIDE, SIDE), np.float32)
        writer.write("images", 0, pixels)
        writer.write("targets", 0, rng.dirichlet(np.ones(classes), images).astype(np.float32))
    return Augmented(path)


def _extraction(
    name: str, device: torch.device, images: int, batch: int, folder: Path
) -> list[Row]:
    model, settings = _network(name)
    blocks, _, points, _ = list_blocks(name, model, settings)
    shapes = list(blocks[["channels", "height", "width"]].itertuples(index=False, name=None))
    inputs = list(torch.randn(images, 3, SIDE, SIDE).split(batch))

    def forward() -> None:
        with torch.inference_mode():
            for each in inputs:
                model(each.to(device)).cpu()

    def whole() -> None:
        extract(model, points, shapes, inputs, images, folder / name, device=device)

    memory = _peak(device, whole)
    forward()
    plain, seconds = _seconds(device, forward), _seconds(device, whole)
    size = (folder / name).stat().st_size / 1e9
    detail = f"{images} images in batches of {batch}, {size:.2f} GB to disk{memory}"
    return [
        Row(f"{name}: extraction of all cut points", images / seconds, "images/s", None, detail),
        Row(f"{name}: plain forward pass", images / plain, "images/s", None, "float32"),
    ]


def _landscape(name: str, device: torch.device, images: int, batch: int, folder: Path) -> Row:
    model, settings = _network(name)
    drawn, points = _drawn(folder / f"{name}.drawn", images, settings["classes"]), grid(3, 1.0)
    precision = pick_precision("auto", device)

    def measure() -> None:
        losses_at(
            model,
            drawn,
            points,
            seed=0,
            batch_size=batch,
            weight_decay=DECAY,
            device=device,
            precision=precision,
            say=lambda text: None,
        )

    memory = _peak(device, measure)
    detail = f"{images} images in batches of {batch}, {precision}{memory}"
    rate = len(points) / _seconds(device, measure)
    return Row(f"{name}: landscape", rate, "grid points/s", None, detail)


def _hessian(name: str, device: torch.device, batch: int, products: int) -> Row:
    model, settings = _network(name)
    model.to(device)
    images = torch.randn(batch, 3, SIDE, SIDE, device=device)
    targets = torch.rand(batch, settings["classes"], device=device).softmax(1)
    hessian = of_model(model, images, targets, DECAY)
    start = hessian.start(0)
    vector = start.signs(start.chance())

    def apply() -> None:
        for _ in range(products):
            hessian(vector)

    memory = _peak(device, apply)
    rate = products / _seconds(device, apply)
    detail = f"{batch} images, {hessian.size} parameters{memory}"
    return Row(f"{name}: products of the Hessian with a vector", rate, "products/s", None, detail)


def measure(device: torch.device, images: int, batch: int, products: int) -> list[Row]:
    """Return what a device does with the paper's ViT-Ti and ResNet-50, of random weights."""
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for name in MODELS:
            rows += _extraction(name, device, images, batch, Path(place))
            rows.append(_landscape(name, device, images, batch, Path(place)))
            rows.append(_hessian(name, device, batch, products))
    return rows


def main() -> None:
    """Measure, and write the part of the page."""
    if not torch.cuda.is_available():
        sys.exit("bench-gpu: there is no CUDA device here: run it on a machine that has one.")
    device = pick_device("cuda")
    rows = measure(device, images=4096, batch=256, products=50)
    where = f"*{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}; host:* {machine()}"
    body = "\n".join([where, "", *as_table(rows)])
    print(body)
    TARGET.write_text(page({**measured_before(), GPU: body}), encoding="utf-8")


if __name__ == "__main__":
    main()
