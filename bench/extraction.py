"""Extraction of latents against the plain forward pass, variance against the same, and memory."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn

from bench.rows import Row
from scripts._job import keep_memory
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.measures.feature_variance import compute as feature_variance
from vitscope.measures.fourier import compute as fourier
from vitscope.measures.given import OnLatents
from vitscope.networks.building.networks import find_family
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.networks.running.extraction import HeldMaps, write_latents
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

IMAGES, BATCH, TURNS = 256, 64, 3
CPU = torch.device("cpu")
# What the Fourier transform measures with all of it: rings, and where bands end.
WHOLE = (True, (1 / 3, 2 / 3))
MODELS = ("vit_ti", "resnet_50")


def network_of(study: str, name: str) -> tuple[nn.Module, list[CutPoint], list[tuple]]:
    loaded = load_study(BUNDLED_STUDIES / f"{study}.yaml")
    model, data = loaded.models[name], loaded.dataset_of(name)
    family = find_family(model.family)
    torch.manual_seed(0)
    network = family.build(model.arch, data.classes, data.image_size).eval()
    blocks = list_blocks(name, network, loaded.network(name))
    shapes = list(blocks.table[["channels", "height", "width"]].itertuples(index=False, name=None))
    return network, blocks.points, shapes


def batches_of(images: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(BATCH, 3, 32, 32, generator=generator) for _ in range(images // BATCH)]


def plain_pass(network: nn.Module, batches: Iterable[Tensor]) -> Callable[[], None]:
    """Return the forward pass of batches, and nothing else."""

    def run() -> None:
        with torch.inference_mode():
            for batch in batches:
                network(batch)

    return run


def seconds_of(action: Callable[[], object]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


class Times(NamedTuple):
    """The seconds of a turn, and the ratio of a pass that is captured to a plain one.

    `half_diagonals` is a pass whose variance and half-diagonals are measured in memory,
    `transforms` one with whole transforms besides, `unwritten` an extraction without its writes.
    """

    plain: float
    extraction: float
    variance: float
    half_diagonals: float
    transforms: float
    later_extraction: float
    unwritten: float
    captured_to_plain: float


def _time_model(name: str, path: Path) -> tuple[list[Times], str]:
    """Return the times of every turn, and a sentence about what is timed."""
    network, points, shapes = network_of("paper", name)
    batches = batches_of(IMAGES)

    plain, names = plain_pass(network, batches), [point.name for point in points]

    def captured() -> None:
        with capturing(network, points, lambda index, latent: None):
            plain()

    def extraction() -> None:
        write_latents(network, points, shapes, batches, IMAGES, path)

    def measured(*whole: Any) -> None:
        held = HeldMaps(name, dict(zip(names, shapes, strict=True)), BATCH, "float32", CPU)
        with capturing(network, points, held.put), torch.inference_mode():
            for number, batch in enumerate(batches):
                held.images = 0
                network(batch)
                held.images = len(batch)
                given = OnLatents(held, number * BATCH, torch.get_num_threads())
                feature_variance.measure_feature_variance(given)
                fourier.measure_fourier(given, *whole)

    def variance() -> None:
        feature_variance.measure_feature_variance(OnLatents(TensorFile(path), 0))

    plain()
    times = []
    for _ in range(TURNS):
        first = [seconds_of(plain), seconds_of(extraction), seconds_of(variance)]
        size = path.stat().st_size
        path.unlink()
        first += [seconds_of(lambda: measured(False, None)), seconds_of(lambda: measured(*WHOLE))]
        later = seconds_of(extraction)
        path.unlink()
        with patch.object(TensorWriter, "_write_bytes"):
            unwritten = seconds_of(extraction)
        path.unlink()
        # The first pass after an extraction finds no memory that it may use again.
        plain()
        times.append(Times(*first, later, unwritten, seconds_of(captured) / seconds_of(plain)))
    forward = median(turn.plain for turn in times)
    detail = (
        f"{IMAGES} images, {len(points)} cut points, {size / 1e9:.2f} GB, forward {forward:.2f} s"
    )
    return times, detail


def _measure_model(name: str, folder: Path) -> list[Row]:
    times, detail = _time_model(name, folder / f"{name}.safetensors")
    return [
        Row(
            f"{name}: reading all cut points over the plain forward pass",
            median(turn.captured_to_plain for turn in times),
            "times",
            1.03,
            "nothing is done with what is read",
        ),
        Row(
            f"{name}: a pass with its variance and half-diagonals over the plain forward pass",
            median(turn.half_diagonals / turn.plain for turn in times),
            "times",
            1.25,
            f"measured in memory: {detail}",
        ),
        Row(
            f"{name}: the same with radial profile and band variances",
            median(turn.transforms / turn.plain for turn in times),
            "times",
            detail="whole transforms besides",
        ),
        Row(
            f"{name}: extraction of all cut points over the plain forward pass",
            median(turn.extraction / turn.plain for turn in times),
            "times",
            1.25,
            "first shard of latents that are kept",
        ),
        Row(
            f"{name}: the same for a later shard",
            median(turn.later_extraction / turn.plain for turn in times),
            "times",
            1.25,
            "the shard before it was just deleted, and its memory is used again",
        ),
        Row(
            f"{name}: extraction of all cut points without its writes, over the same",
            median(turn.unwritten / turn.plain for turn in times),
            "times",
            detail="copies and checksums; the rest is the system's, which must find memory",
        ),
        Row(
            f"{name}: variance from latents over the plain forward pass",
            median(turn.variance / turn.plain for turn in times),
            "times",
            0.1,
            f"{median(turn.variance for turn in times):.2f} s",
        ),
    ]


def measure() -> list[Row]:
    """Compare extraction and variance with the plain forward pass of the same batches."""
    # As jobs do.
    keep_memory()
    with tempfile.TemporaryDirectory() as folder:
        return [row for name in MODELS for row in _measure_model(name, Path(folder))]


def _peak_after_extraction(name: str, images: int) -> None:
    """Print the peak memory of a process that extracts; run in a process of its own."""
    network, points, shapes = network_of("mini", name)
    generator = torch.Generator().manual_seed(0)
    batches = (torch.randn(BATCH, 3, 32, 32, generator=generator) for _ in range(images // BATCH))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latents.safetensors"
        write_latents(network, points, shapes, batches, images, path)
    # Not ru_maxrss: that one starts from the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    print(json.dumps(int(peak) / 1024))


def measure_memory() -> list[Row]:
    """Compare the peak memory of extraction for few and for many images."""
    rows = []
    for name in ("vit", "resnet"):
        peaks = [
            float(
                subprocess.run(
                    [sys.executable, "-m", "bench.extraction", name, str(images)],
                    capture_output=True,
                    text=True,
                    check=True,
                    cwd=Path(__file__).parents[1],
                ).stdout
            )
            for images in (256, 4096)
        ]
        detail = f"{peaks[0]:.0f} MiB for 256 images, {peaks[1]:.0f} MiB for 4,096, one shard each"
        what = f"mini {name}: peak memory of extraction, 4,096 images over 256"
        rows.append(Row(what, peaks[1] / peaks[0], "times", 1.05, detail))
    return rows


if __name__ == "__main__":
    _peak_after_extraction(sys.argv[1], int(sys.argv[2]))
