"""Noise of one frequency against the forward pass that it is measured by, and a whole job."""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import pandas as pd
import torch
from torch import nn

from bench.rows import Row
from vitscope.measures.disturbed.frequency_noise import (
    filter_images,
    noise_filter,
    noise_ring,
    random_noise_signs,
)
from vitscope.measures.disturbed.measure import FrequencyNoiseSettings as Settings
from vitscope.networks.building.networks import find_family
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

BATCH, TURNS = 64, 3
MODELS = ("vit_ti", "vit_tiny_imagenet")
ROOT = Path(__file__).parents[1]


def _network(name: str) -> tuple[nn.Module, int]:
    study = load_study(BUNDLED_STUDIES / "paper.yaml")
    model, data = study.models[name], study.dataset_of(name)
    torch.manual_seed(0)
    network = find_family(model.family).build(model.arch, data.classes, data.image_size)
    return network.eval(), data.image_size


def _measure_model(name: str) -> Row:
    network, size = _network(name)
    noise = load_study(BUNDLED_STUDIES / "paper.yaml").section("frequency_noise", Settings)
    frequencies = noise.frequencies
    images = torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(0))
    times = []
    for turn in range(TURNS + 1):
        start = perf_counter()
        with torch.inference_mode():
            network(images)
        forward = perf_counter() - start
        start = perf_counter()
        factors = [noise_filter(noise_ring(each, noise.width, size)) for each in frequencies]
        for filtered in filter_images(random_noise_signs(turn, range(BATCH), size), factors):
            images + images.new_tensor(filtered)
        times.append((forward, (perf_counter() - start) / len(frequencies)))
    forward, drawn = (median(turn[which] for turn in times[1:]) for which in (0, 1))
    return Row(
        f"{name}: noise of one frequency over the forward pass",
        median(turn[1] / turn[0] for turn in times[1:]),
        "times",
        0.1,
        f"{BATCH} images of {size} pixels: {1000 * drawn:.1f} ms, forward {forward:.2f} s",
    )


def _measure_job(model: str) -> Row:
    """Time a job of the bundled study, as Snakemake measures it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("snakemake")), "-s", str(ROOT / "Snakefile")]
        profile = ["--workflow-profile", str(ROOT / "profiles" / "default"), "--cores", "1"]
        target = f"results/mini/frequency_noise/{model}.parquet"
        subprocess.run([*command, *profile, target], cwd=folder, check=True, capture_output=True)
        record = pd.read_csv(
            Path(folder) / f"benchmarks/mini/frequency_noise/{model}.tsv", sep="\t"
        )
    noise = load_study(BUNDLED_STUDIES / "mini.yaml").section("frequency_noise", Settings)
    passes = 1 + noise.seeds * len(noise.frequencies)
    detail = f"{noise.images} images, {passes} times, one thread"
    return Row(f"mini {model}: the job of the noise", float(record["s"][0]), "s", None, detail)


def measure() -> list[Row]:
    """Compare noise with forward passes, and time jobs of the bundled study."""
    return [*map(_measure_model, MODELS), *map(_measure_job, ("resnet", "vit"))]
