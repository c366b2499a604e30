"""The benchmark of a GPU: its body runs anywhere, its command says where it cannot."""

import subprocess
import sys

import pytest
import torch

from bench import gpu, run


@pytest.mark.nightly
def test_every_row_is_measured() -> None:
    rows = gpu.measure(torch.device("cpu"), images=4, batch=2, products=1)
    assert len(rows) == 4 * len(gpu.MODELS)
    assert {row.unit for row in rows} == {"images/s", "grid points/s", "products/s"}
    assert all(row.value > 0 for row in rows)


@pytest.mark.nightly
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device_the_command_says_so() -> None:
    command = [sys.executable, "-m", "bench.gpu"]
    done = subprocess.run(command, cwd=run.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "bench-gpu: there is no CUDA device here: run it on a machine that has one."
    ]


def test_other_benchmarks_keep_the_part_of_the_gpu() -> None:
    sections = {run.GPU: "numbers", "Memory": "more"}
    assert run.page(sections).endswith(f"## Memory\n\nmore\n\n## {run.GPU}\n\nnumbers\n")
    assert run.GPU in run.measured_before()
