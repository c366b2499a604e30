"""The Fourier measures of a shard of latents against the plain forward pass of its images."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from bench.extraction import (
    BATCH,
    IMAGES,
    MODELS,
    TURNS,
    batches_of,
    network_of,
    plain_pass,
    seconds_of,
)
from bench.rows import Row
from vitscope.files.tensors import TensorFile
from vitscope.measures.fourier.compute import measure_fourier
from vitscope.measures.given import OnLatents
from vitscope.networks.running.extraction import write_latents

THREADS = 2
EDGES = (0.25, 0.5)


def _whole_transforms(latents: TensorFile) -> list[torch.Tensor]:
    """Transform every map as a whole, with torch, and take the diagonal of the mean."""
    diagonals = []
    for name in latents.names:
        maps = latents.array(name)
        half = maps.shape[-1] // 2
        total = torch.zeros(maps.shape[-2:])
        for first in range(0, len(maps), BATCH):
            batch = torch.from_numpy(maps[first : first + BATCH].copy())
            logarithm = (torch.fft.fft2(batch).abs() + 1e-6).log()
            total += logarithm.mean(dim=1).sum(dim=0)
        mean = torch.roll(total / len(maps), (half, half), (0, 1))
        diagonals.append(mean.diag()[half:])
    return diagonals


def _row(name: str, what: str, times: list[tuple[float, float]], bound: float | None) -> Row:
    forward, measure = (median(column) for column in zip(*times, strict=True))
    return Row(
        f"{name}: {what}, over the plain forward pass",
        median(ours / plain for plain, ours in times),
        "times",
        bound,
        f"{measure:.2f} s, forward {forward:.2f} s, {THREADS} threads",
    )


def _measure_model(name: str, folder: Path) -> list[Row]:
    network, points, shapes = network_of("paper", name)
    batches = batches_of(IMAGES)
    path = folder / f"{name}.safetensors"
    write_latents(network, points, shapes, batches, IMAGES, path)
    latents = TensorFile(path)

    plain, given = plain_pass(network, batches), OnLatents(latents, 0, THREADS)
    actions: dict[str, tuple[Callable[[], object], float | None]] = {
        "half-diagonals": (lambda: measure_fourier(given, False, None), 0.05),
        "the same by whole transforms in torch": (lambda: _whole_transforms(latents), None),
        "half-diagonals, radial profile and band variances": (
            lambda: measure_fourier(given, True, EDGES),
            None,
        ),
    }
    times: dict[str, list[tuple[float, float]]] = {what: [] for what in actions}
    for _ in range(TURNS):
        forward = seconds_of(plain)
        for what, (action, _bound) in actions.items():
            times[what].append((forward, seconds_of(action)))
    path.unlink()
    return [_row(name, what, times[what], bound) for what, (_, bound) in actions.items()]


def measure() -> list[Row]:
    """Compare the Fourier measures with the plain forward pass of the same batches."""
    with tempfile.TemporaryDirectory() as folder:
        return [row for name in MODELS for row in _measure_model(name, Path(folder))]
