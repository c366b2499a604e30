"""Removing every unit of a model: with the prefix kept, against a whole forward pass for each."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

from bench.extraction import batches_of, network_of
from bench.rows import Row
from vitscope.measures.branches.lesion import joins_for_lesions, lesioned
from vitscope.networks.finding.capture import Silencing
from vitscope.networks.finding.cut_points import Join

IMAGES, TURNS = 64, 2
# The models, and the most that keeping the prefix may take; None where it is only reported.
BOUNDS = {"vit_ti": 1 / 1.7, "resnet_50": None}


def _naive(model: nn.Module, joins: list[Join], images: Tensor) -> None:
    with torch.inference_mode():
        model(images)
        for join in joins:
            silencing = Silencing(model, join.names, join)
            silencing.begin(len(images))
            with silencing:
                model(images)


WAYS = {"naive": _naive, "prefix": lesioned}


def _case(name: str) -> tuple[nn.Module, list[Join], Tensor]:
    model, points, _ = network_of("paper", name)
    (images,) = batches_of(IMAGES)
    return model, list(joins_for_lesions(name, points).values()), images


def _seconds(way: str, case: tuple[nn.Module, list[Join], Tensor]) -> float:
    start = perf_counter()
    WAYS[way](*case)
    return perf_counter() - start


def _peak(name: str, way: str) -> float:
    """Return the peak memory in MiB of a process that goes one way."""
    command = [sys.executable, "-m", "bench.lesions", name, way]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    return float(json.loads(done.stdout))


def _measure_model(name: str, bound: float | None) -> list[Row]:
    case = _case(name)
    case[0](case[2])
    turns = [{way: _seconds(way, case) for way in WAYS} for _ in range(TURNS)]
    naive, prefix = (median(turn[way] for turn in turns) for way in WAYS)
    peaks = {way: _peak(name, way) for way in WAYS}
    return [
        Row(
            f"{name}: lesions of all units, over a whole forward pass for each",
            median(turn["prefix"] / turn["naive"] for turn in turns),
            "times",
            bound,
            f"{IMAGES} images, {len(case[1])} units, {prefix:.2f} s over {naive:.2f} s",
        ),
        Row(
            f"{name}: peak memory of the same",
            peaks["prefix"] / peaks["naive"],
            "times",
            None,
            f"{peaks['prefix']:.0f} MiB over {peaks['naive']:.0f} MiB",
        ),
    ]


def measure() -> list[Row]:
    """Compare the two ways on one batch."""
    return [row for name, bound in BOUNDS.items() for row in _measure_model(name, bound)]


def _print_peak(name: str, way: str) -> None:
    WAYS[way](*_case(name))
    # Not ru_maxrss: that one starts from the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    print(json.dumps(int(peak) / 1024))


if __name__ == "__main__":
    _print_peak(sys.argv[1], sys.argv[2])
