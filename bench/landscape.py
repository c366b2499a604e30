"""Points of a landscape against plain forward passes, and against the notebook's loop."""

import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor, nn

from bench.images import noise
from bench.rows import Row
from vitscope.measures.given import OnLoss
from vitscope.measures.landscape.compute import LAYOUTS, losses_at, pick_landscape_precision
from vitscope.measures.landscape.measure import LandscapeSettings, grid
from vitscope.networks.building.networks import find_family
from vitscope.studies.loading import BUNDLED_STUDIES, load_study
from vitscope.training.batches import AugmentedImages, Batches, write_augmented_batches

IMAGES, TURNS = 192, 3
# The default of a study's landscape, and the batches of the notebook.
BATCH, NOTEBOOK_BATCH = 32, 96
# The notebook's points take equal times: a few of them are counted.
POINTS, COUNTED_SLOW = 25, 2
MODELS = ("vit_ti", "resnet_50")
BINS, CUTOFFS = 10, (0.0, 0.9)
CPU = torch.device("cpu")


class _Bench:
    """A model of the paper with random weights, and generated images augmented for it."""

    def __init__(self, name: str, folder: Path) -> None:
        study = load_study(BUNDLED_STUDIES / "paper.yaml")
        entry, data = study.models[name], study.dataset_of(name)
        family = find_family(entry.family)
        torch.manual_seed(0)
        self.model = family.build(entry.arch, data.classes, data.image_size).eval()
        self.recipe, self.mean, self.std = asdict(study.recipe(name)), entry.mean, entry.std
        self.split = noise(folder / "split", data.classes, IMAGES + NOTEBOOK_BATCH)
        path = folder / name
        write_augmented_batches(
            self.split, self.recipe, IMAGES, 0, path, mean=self.mean, std=self.std
        )
        self.images = AugmentedImages(path)

    def points(self) -> float:
        """Return the seconds per point of a landscape."""
        points = grid(5, 1.0)
        start = perf_counter()
        given = OnLoss(self.model, self.images, CPU, say=lambda text: None)
        losses_at(given, points, LandscapeSettings(batch_size=BATCH), self.recipe["weight_decay"])
        return (perf_counter() - start) / len(points)

    def forward(self, precision: str) -> float:
        """Return the seconds of a plain forward pass over the same batches, in memory."""
        layout = LAYOUTS[precision]
        inputs = [pixels.to(memory_format=layout) for pixels, _ in self.images.batches(BATCH)]
        model = self.model.to(memory_format=layout)  # type: ignore[call-overload]
        start = perf_counter()
        with (
            torch.inference_mode(),
            torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"),
        ):
            for pixels in inputs:
                model(pixels)
        return perf_counter() - start

    def notebook(self, count: int) -> float:
        """Return the seconds per point of a loop like the notebook's."""
        self.model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        state = deepcopy(self.model.state_dict())
        directions = [_direction(state) for _ in range(2)]
        start = perf_counter()
        for x, y in grid(5, 1.0)[:count]:
            moved = deepcopy(state)
            for key in moved:
                moved[key] = state[key] + x * directions[0][key] + y * directions[1][key]
            self.model.load_state_dict(moved)
            l2 = sum(float(torch.norm(weights.detach())) for weights in self.model.parameters())
            _evaluated(self.model, self._loader(), len(self.split.classes), l2)
        seconds = (perf_counter() - start) / count
        self.model.load_state_dict(state)
        return seconds

    def _loader(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield as many images, augmented anew as a data loader does at every point."""
        recipe = self.recipe | {"images": IMAGES, "batch_size": NOTEBOOK_BATCH}
        return Batches(self.split, recipe, 0, self.mean, self.std).ahead(0, 1, workers=0)


def _direction(state: dict[str, Tensor]) -> dict[str, Tensor]:
    direction = {}
    for key, weights in state.items():
        drawn = torch.randn(weights.shape) if weights.ndim >= 2 else torch.zeros_like(weights)
        if weights.ndim >= 2 and weights.is_floating_point():
            scale = torch.norm(weights, dim=0, keepdim=True)
            drawn = drawn * scale / (torch.norm(drawn, dim=0, keepdim=True) + 1e-7)
        direction[key] = drawn.to(weights.dtype)
    return direction


def _confusion(labels: Any, predictions: Any, chosen: Any, classes: int) -> Any:
    counts = np.bincount(labels[chosen] * classes + predictions[chosen], minlength=classes**2)
    return counts.reshape(classes, classes)


def _evaluated(
    model: nn.Module, loader: Iterator[tuple[Tensor, Tensor]], classes: int, l2: float
) -> dict[str, Any]:
    """Evaluate as the notebook does: matrices by cut-off and by bin for every batch, and a plot."""
    losses, top5, brier = [], [], []
    by_cutoff = [[np.zeros((classes, classes)) for _ in range(2)] for _ in CUTOFFS]
    by_bin = [np.zeros((classes, classes)) for _ in range(BINS)]
    confidences = [[] for _ in range(BINS)]  # type: ignore[var-annotated]
    with torch.no_grad():
        for pixels, targets in loader:
            logits = model(pixels)
            losses.append(nn.functional.cross_entropy(logits, targets).item())
            probability = torch.softmax(logits, dim=1).numpy()
            labels, predictions = targets.argmax(1).numpy(), probability.argmax(axis=1)
            confidence = probability.max(axis=1)
            top5.append((np.argsort(-probability)[:, :5] == labels[:, None]).any(axis=1).mean())
            brier.append(np.square(probability - np.eye(classes)[labels]).sum(axis=1).mean())
            for cutoff, (certain, uncertain) in zip(CUTOFFS, by_cutoff, strict=True):
                certain += _confusion(labels, predictions, confidence >= cutoff, classes)
                uncertain += _confusion(labels, predictions, confidence < cutoff, classes)
            for number in range(BINS):
                low, high = number / BINS, (number + 1) / BINS
                chosen = (confidence > low) & (confidence <= high)
                by_bin[number] += _confusion(labels, predictions, chosen, classes)
                confidences[number].extend(confidence[chosen])
    accuracies = [np.trace(matrix) / max(matrix.sum(), 1) for matrix in by_bin]
    _calibration_plot(accuracies)
    return {
        "loss": np.mean(losses) + 0.05 * l2,
        "scores": [np.trace(certain) / max(certain.sum(), 1) for certain, _ in by_cutoff],
        "top5": np.mean(top5),
        "brier": np.mean(brier),
        "confidence": [np.mean(each) if each else np.nan for each in confidences],
    }


def _calibration_plot(accuracies: list[float]) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.bar(np.arange(BINS) / BINS, accuracies, width=1 / BINS, align="edge", edgecolor="k")
    axes.plot([0, 1], [0, 1], "--")
    FigureCanvasAgg(figure).draw()


def _measure_model(name: str, folder: Path) -> list[Row]:
    bench = _Bench(name, folder)
    precision = pick_landscape_precision("auto", CPU)
    bench.forward(precision)
    turns = [
        (bench.points(), bench.forward(precision), bench.notebook(COUNTED_SLOW))
        for _ in range(TURNS)
    ]
    point, forward, notebook = (median(column) for column in zip(*turns, strict=True))
    images = f"{IMAGES} images, {torch.get_num_threads()} threads"
    return [
        Row(
            f"{name}: a point of a landscape over the plain forward pass",
            median(ours / plain for ours, plain, _ in turns),
            "times",
            1.15,
            f"{images}, {precision} both: {point:.2f} s, forward {forward:.2f} s; the directions, "
            f"drawn once, included",
        ),
        Row(
            f"{name}: {POINTS} points over the notebook's loop",
            median(ours / loop for ours, _, loop in turns),
            "times",
            0.125,
            f"{images}: {POINTS * point:.0f} s in {precision}; the loop {POINTS * notebook:.0f} s, "
            f"float32, from {COUNTED_SLOW} points",
        ),
    ]


def measure() -> list[Row]:
    """Compare points with forward passes and with the notebook's loop, on all threads."""
    with tempfile.TemporaryDirectory() as folder:
        return [row for name in MODELS for row in _measure_model(name, Path(folder))]
