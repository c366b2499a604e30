"""Eigenvalues of the Hessian by Lanczos against power iteration, and what a product costs."""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.rows import Row
from vitscope.measures.hessian_operator import Hessian, hessian_of_model
from vitscope.measures.lanczos import Spectrum, largest_eigenvalues
from vitscope.networks.building.networks import find_family
from vitscope.package_data import ROOT
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

TOP, TOLERANCE, MOST_STEPS, DECAY = 5, 1e-3, 200, 0.05
TURNS, IMAGES = 3, 16
# How many products power iteration may take, over those of Lanczos: more would take too long.
MOST_TIMES = 2.5


def _network(study: str, name: str, weights: Path | None) -> tuple[nn.Module, int]:
    loaded = load_study(BUNDLED_STUDIES / f"{study}.yaml")
    model, data = loaded.models[name], loaded.dataset_of(name)
    torch.manual_seed(0)
    network = find_family(model.family).build(model.arch, data.classes, data.image_size)
    if weights:
        stored = safetensors.torch.load_file(weights)
        network.load_state_dict({key: value.float() for key, value in stored.items()})
    return network.eval(), data.classes


def _batch(images: int, classes: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    targets = torch.rand(images, classes, generator=generator).mul(5).softmax(1)
    return torch.randn(images, 3, 32, 32, generator=generator), targets


def _seconds(action: Callable[[], object]) -> float:
    # Of this process alone, so that other work on the machine counts less.
    start = process_time()
    action()
    return process_time() - start


def _deflated(hessian: Hessian, found: list[tuple[float, Tensor]], vector: Tensor) -> Tensor:
    """Return a vector without what it has of the eigenvectors that were found."""
    for _, known in found:
        vector = vector - (vector @ known) * known
    return vector / torch.linalg.vector_norm(vector)


def power_iteration(hessian: Hessian, most: int) -> tuple[list[float], float, int]:
    """Return eigenvalues by power iteration with deflation, the largest residual, and products.

    Every eigenvalue is iterated to the tolerance that Lanczos is held to, within `most` products.
    """
    found: list[tuple[float, Tensor]] = []
    worst, products = 0.0, 0
    generator = torch.Generator().manual_seed(0)
    while len(found) < TOP and products < most:
        vector = _deflated(hessian, found, torch.randn(hessian.size, generator=generator))
        residual = float("inf")
        while products < most and residual > TOLERANCE:
            image = hessian(vector)
            products += 1
            value = float(vector @ image)
            scale = abs(found[0][0]) if found else abs(value)
            residual = float(torch.linalg.vector_norm(image - value * vector)) / scale
            following = _deflated(hessian, found, image)
            kept, vector = vector, following
        found.append((value, kept))
        worst = max(worst, residual)
    return [value for value, _ in found], worst, products


def _compare(what: str, network: nn.Module, images: Tensor, targets: Tensor) -> list[Row]:
    def forward_backward() -> None:
        loss = functional.cross_entropy(network(images), targets)
        torch.autograd.grad(loss, list(network.parameters()))

    hessian = hessian_of_model(network, images, targets, DECAY)
    start = hessian.start(0)
    vector = start.signs(start.chance())
    hessian(vector)
    forward_backward()
    turns = [(_seconds(forward_backward), _seconds(lambda: hessian(vector))) for _ in range(TURNS)]
    product = median(turn[1] for turn in turns)
    spectra: list[Spectrum] = []
    lanczos = _seconds(
        lambda: spectra.append(largest_eigenvalues(hessian, start, TOP, TOLERANCE, MOST_STEPS))
    )
    steps = spectra[0].steps
    powers: list[tuple[list[float], float, int]] = []
    power = _seconds(lambda: powers.append(power_iteration(hessian, int(MOST_TIMES * steps))))
    values, residual, products = powers[0]
    stopped = len(values) < TOP or residual > TOLERANCE
    reached = f"{len(values)} of {TOP} eigenvalues within {residual:.1g}" if stopped else "the same"
    return [
        Row(
            f"{what}: top {TOP} eigenvalues by Lanczos over power iteration with deflation",
            lanczos / power,
            "times",
            0.5,
            f"{len(images)} images; {steps} products, {lanczos:.1f} s to a residual of "
            f"{TOLERANCE:g}, against {products} and {power:.1f} s"
            + (f", stopped there with {reached}" if stopped else " to the same"),
        ),
        Row(
            f"{what}: a product with the Hessian over a forward and a backward pass",
            median(turn[1] / turn[0] for turn in turns),
            "times",
            None,
            f"{len(images)} images, {product:.2f} s",
        ),
    ]


def measure() -> list[Row]:
    """Compare on the bundled ViT and on the paper's ViT-Ti, of random weights."""
    bundled = ROOT / "resources" / "checkpoints" / "mini" / "vit" / "end.safetensors"
    rows = []
    for what, study, name, weights in (
        ("mini vit", "mini", "vit", bundled),
        ("vit_ti", "paper", "vit_ti", None),
    ):
        network, classes = _network(study, name, weights)
        rows += _compare(what, network, *_batch(IMAGES, classes))
    return rows
