"""The CKA of a shard against the plain forward pass of its images, and its memory."""

import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

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
from vitscope.files.tensors import TensorFile, TensorWriter
from vitscope.measures.cka.compute import measure_cka, merge_cka
from vitscope.measures.given import OnLatents, Parts
from vitscope.networks.running.extraction import write_latents

# As in a job of the workflow, which has one thread.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MANY_IMAGES = 10_000


def _measure_model(name: str) -> Row:
    network, points, shapes = network_of("paper", name)
    batches = batches_of(IMAGES)

    plain = plain_pass(network, batches)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latents.safetensors"
        write_latents(network, points, shapes, batches, IMAGES, path)
        measured = OnLatents(TensorFile(path), 0)
        times = [
            (seconds_of(plain), seconds_of(lambda: measure_cka(measured, BATCH)))
            for _ in range(TURNS)
        ]
        size = path.stat().st_size / 1e9
    forward, hsic = (median(column) for column in zip(*times, strict=True))
    return Row(
        f"{name}: CKA of a shard of {IMAGES} images over the plain forward pass",
        median(hsic / forward for forward, hsic in times),
        "times",
        0.15,
        f"{hsic:.2f} s, forward {forward:.2f} s, one thread; "
        f"{len(points)} cut points, {size:.2f} GB",
    )


def _peak(images: int) -> float:
    """Return the most memory that the CKA of a shard allocates, in MiB."""
    shapes = {f"map{index}": ("F32", (images, 64, 16, 16)) for index in range(4)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latents.safetensors"
        with TensorWriter(path, shapes, {}) as writer:
            rows = np.random.default_rng(0).normal(size=(BATCH, 64, 16, 16)).astype(np.float32)
            for name in shapes:
                for first in range(0, images, BATCH):
                    writer.write(name, first, rows)
        tracemalloc.start()
        measure_cka(OnLatents(TensorFile(path), 0), BATCH)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / 2**20


def _measure_memory() -> Row:
    few, many = _peak(256), _peak(2048)
    detail = f"{few:.1f} MiB for 256 images, {many:.1f} MiB for 2,048; latents stay on disk"
    return Row(
        "peak memory of CKA, a shard of 2,048 images over 256", many / few, "times", 1.05, detail
    )


def _measure_merge() -> Row:
    rng = np.random.default_rng(0)
    shapes = {f"map{index}": ("F32", (BATCH, 4, 1, 1)) for index in range(50)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latents.safetensors"
        with TensorWriter(path, shapes, {}) as writer:
            for name in shapes:
                writer.write(name, 0, rng.normal(size=(BATCH, 4, 1, 1)).astype(np.float32))
        part = measure_cka(OnLatents(TensorFile(path), 0), BATCH)
    shards = [part.assign(first_image=first) for first in range(0, MANY_IMAGES, BATCH)]
    return Row(
        f"merging the CKA of {MANY_IMAGES:,} images, 50 cut points",
        seconds_of(lambda: merge_cka(Parts("net", iter(shards), pd.DataFrame()))),
        "s",
        detail=f"{len(shards)} batches of {BATCH}",
    )


def measure() -> list[Row]:
    """Compare CKA with the forward pass, in a process of one thread; then memory and merging."""
    process = subprocess.run(
        [sys.executable, "-m", "bench.cka"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
        env=os.environ | ONE_THREAD,
    )
    return [Row(*row) for row in json.loads(process.stdout)]


if __name__ == "__main__":
    rows = [*map(_measure_model, MODELS), _measure_memory(), _measure_merge()]
    print(json.dumps([(r.what, r.value, r.unit, r.bound, r.detail) for r in rows]))
