"""Numbers of attention against the plain forward pass; memory, by images and at a large size."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from bench.extraction import IMAGES, TURNS, batches_of, network_of, plain_pass, seconds_of
from bench.rows import Row
from vitscope.measures.attention.compute import attention_statistics
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import Attention, Weights, attending
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks

LARGE = 512


def _found(network: nn.Module, size: int, points: Any = None) -> list[Attention]:
    described = {"image_size": size, "mean": [0, 0, 0]}
    cut_points = points or list_blocks("network", network, described).points
    return find_attention(network, described, cut_points).attentions


def _read(network: nn.Module, found: list[Attention], size: int, batches: Iterable[Tensor]) -> None:
    """Run a network and compute all numbers of its attention."""
    numbers = attention_statistics(found, (size, size))

    def of(position: int, weights: Weights) -> None:
        numbers[position].compute(weights)

    with attending(network, found, of):
        plain_pass(network, batches)()


def _times() -> Row:
    network, points, _ = network_of("paper", "vit_ti")
    found = _found(network, 32, points)
    batches = batches_of(IMAGES)
    plain = plain_pass(network, batches)
    plain()
    turns = [
        (seconds_of(plain), seconds_of(lambda: _read(network, found, 32, batches)))
        for _ in range(TURNS)
    ]
    forward = median(first for first, _ in turns)
    return Row(
        "vit_ti: distance, entropy and NMI of all heads over the plain forward pass",
        median(second / first for first, second in turns),
        "times",
        2,
        f"{IMAGES} images, {len(found)} attentions, forward {forward:.2f} s",
    )


def _run_alone(what: str, images: int) -> None:
    """Print the peak memory of a process that runs a network, and may read its attention."""
    large = what.startswith("large")
    size = LARGE if large else 32
    if large:
        torch.manual_seed(0)
        build = import_timm("timm").create_model
        network = build("vit_tiny_patch16_224", img_size=LARGE).eval()
        found = _found(network, size)
    else:
        network, points, _ = network_of("paper", "vit_ti")
        found = _found(network, size, points)
    batch = 1 if large else 64
    batches = (torch.randn(batch, 3, size, size) for _ in range(images // batch))
    if what.endswith("plain"):
        plain_pass(network, batches)()
    else:
        _read(network, found, size, batches)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    print(json.dumps(int(peak) / 1024))


def _peak(what: str, images: int) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "bench.attention", what, str(images)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    return float(done.stdout)


def _memory() -> list[Row]:
    few, many = (_peak("small read", images) for images in (128, 1024))
    plain, read = (_peak(f"large {what}", 4) for what in ("plain", "read"))
    tokens = (LARGE // 16) ** 2 + 1
    all_blocks = 12 * 3 * tokens**2 * 4 / 2**20
    return [
        Row(
            "vit_ti: peak memory of reading attention, 1,024 images over 128",
            many / few,
            "times",
            1.05,
            f"{few:.0f} MiB for 128 images, {many:.0f} MiB for 1,024",
        ),
        Row(
            f"ViT-Ti/16 at {LARGE} px: what reading attention takes above the plain pass",
            (read - plain) / all_blocks,
            "of all matrices",
            0.5,
            f"{read:.0f} over {plain:.0f} MiB; the matrices of all blocks of an image have "
            f"{all_blocks:.0f} MiB",
        ),
    ]


def measure() -> list[Row]:
    """Compare reading attention with the plain forward pass of the same batches."""
    return [_times(), *_memory()]


if __name__ == "__main__":
    _run_alone(sys.argv[1], int(sys.argv[2]))
