import json
import random
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn

from tests.helpers.refusals import refusal
from tests.helpers.splits import built, splits_of_shapes
from tests.training.recipes import MEAN, PLAIN, RECIPE, STD, Splits
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.networks.building.networks import find_family
from vitscope.networks.checkpoints.conversion import load_converted_model
from vitscope.training.batches import seeded
from vitscope.training.events import EVENTS, TrainingEvents
from vitscope.training.loop import evaluate_in_training, train
from vitscope.training.steps import learning_rate_of_step

NETWORK: dict[str, Any] = {
    "family": "resnet",
    "arch": {"block": "basic", "blocks": [1, 1], "width": 8},
    "classes": 10,
    "image_size": 32,
    "mean": MEAN,
}
NO_NEWS = {"mean": MEAN, "std": STD, "say": lambda text: None}


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> Splits:
    return splits_of_shapes(tmp_path_factory.mktemp("shapes32"), 1000, 200)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Splits:
    """Build splits too small to learn from, for what holds after every step."""
    return splits_of_shapes(tmp_path_factory.mktemp("few"), 100, 20)


def trained(splits: Splits, folder: Path, seed: int = 0, **changes: Any) -> list[dict[str, float]]:
    with seeded(seed):
        model = find_family("resnet").build(NETWORK["arch"], 10, 32)
    return train(model, *splits, RECIPE | changes, seed, folder, **NO_NEWS)


def test_a_model_learns_and_its_snapshots_are_checkpoints(splits: Splits, tmp_path: Path) -> None:
    history = trained(splits, tmp_path)
    losses = [row["loss"] for row in history]
    assert [row["epoch"] for row in history] == [1, 2, 3, 4]
    assert all(after < before for before, after in pairwise(losses))
    assert history[-1]["learning_rate"] == pytest.approx(RECIPE["final_learning_rate"])
    assert history[-1]["test_accuracy"] > 0.2
    accuracies = {}
    for name in ("init", "warmup", "end"):
        path = tmp_path / f"{name}.safetensors"
        model = load_converted_model(path, NETWORK)
        accuracies[name] = evaluate_in_training(model, splits[1], MEAN, STD, True)["test_accuracy"]
        facts = TensorFile(path).metadata
        assert facts["snapshot"] == name
        assert json.loads(facts["recipe"]) == RECIPE
    assert accuracies["warmup"] == history[0]["test_accuracy"]
    assert accuracies["end"] == history[-1]["test_accuracy"]
    assert accuracies["init"] < 0.2


def test_the_trajectory_is_that_of_the_snapshots(few: Splits, tmp_path: Path) -> None:
    history = trained(few, tmp_path, **PLAIN | {"epochs": 3, "trajectory": True})
    left = {path.name for path in tmp_path.iterdir()} - {EVENTS}
    assert left == {"history.parquet", *(f"{name}.safetensors" for name in SNAPSHOTS)}
    first, warm, last = (flat(tmp_path / f"{name}.safetensors") for name in SNAPSHOTS)
    way, origin = warm - last, first - last
    length = np.linalg.norm(origin)
    assert history[0]["radius"] == pytest.approx(np.linalg.norm(way) / length, rel=1e-6)
    cosine = way @ origin / (np.linalg.norm(way) * length)
    assert history[0]["angle"] == pytest.approx(np.arccos(cosine), rel=1e-6)
    assert (history[-1]["radius"], history[-1]["angle"]) == (0, 0)


SNAPSHOTS = ("init", "warmup", "end")


def flat(path: Path) -> np.ndarray:
    """Return the parameters of a snapshot, in the order of the model, without buffers."""
    file = TensorFile(path)
    names = [name for name, _ in load_converted_model(path, NETWORK).named_parameters()]
    return np.concatenate([file.array(name).ravel() for name in names]).astype(np.float64)


def test_half_precision_halves_the_snapshots(few: Splits, tmp_path: Path) -> None:
    short = PLAIN | {"epochs": 2}
    for dtype in ("float32", "float16"):
        trained(few, tmp_path / dtype, **short | {"snapshot_dtype": dtype})
    full, half = (TensorFile(tmp_path / t / "end.safetensors") for t in ("float32", "float16"))
    for name in full.names:
        # Counters of batch normalization are whole numbers and stay.
        assert half.dtype(name) == full.dtype(name).replace("F32", "F16")
        np.testing.assert_allclose(half.array(name), full.array(name), rtol=1e-3, atol=1e-6)


def test_the_learning_rate_is_a_line_and_a_half_cosine() -> None:
    steps = 20
    recipe = RECIPE | {"epochs": 10, "warmup_epochs": 3}
    optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=recipe["learning_rate"])
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, 7 * steps, eta_min=recipe["final_learning_rate"]
    )
    for step in range(7 * steps + 1):
        rate = learning_rate_of_step(recipe, 3 + step / steps)
        assert rate == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        scheduler.step()
    line = [learning_rate_of_step(recipe, step / steps) for step in range(3 * steps + 1)]
    np.testing.assert_allclose(line, np.linspace(0, recipe["learning_rate"], 3 * steps + 1))


def test_fused_attention_is_off_in_training_only(splits: Splits, tmp_path: Path) -> None:
    arch = {"patch_size": 8, "embed_dim": 16, "depth": 1, "num_heads": 2}
    model = find_family("vit").build(arch, 10, 32)
    attention = model.blocks[0].attn
    attention.fused_attn = True
    seen = set()
    attention.register_forward_hook(lambda *_: seen.add(attention.fused_attn))
    train(model, *splits, RECIPE | {"epochs": 2}, 0, tmp_path, **NO_NEWS)
    assert seen == {False}
    assert attention.fused_attn


def test_generators_are_put_back() -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.random()), float(torch.rand(1))  # noqa: NPY002

    with seeded(5):
        first = draw()
    with seeded(1):
        outside = draw()
        with seeded(5):
            inside = draw()
        rest = draw()
    with seeded(1):
        assert (draw(), draw()) == (outside, rest)
    assert inside == first


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch_size": 1002}, "batch_size is 1002 and there are 1000 images to train on"),
        ({"images": 1001}, "images is 1001 and the training split has 1000 images"),
        ({"warmup_epochs": 4}, "warmup_epochs is 4 of 4 epochs"),
        ({"randaugment": "rand-m5-x3"}, "randaugment is 'rand-m5-x3'"),
        ({"learning_rate": 1e9, "clip_gradient": 1e30}, "diverged in epoch 1: lower training"),
    ],
)
def test_recipes_that_cannot_be_followed(
    splits: Splits, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        trained(splits, tmp_path, **changes)


def test_labels_must_be_known(splits: Splits, tmp_path: Path) -> None:
    sample = built(tmp_path / "sample", {"kind": "sample"}, "train", seed=0, resize=32)
    with pytest.raises(VitscopeError, match="split train of mine has images without labels"):
        trained((sample, splits[1]), tmp_path, batch_size=1)


@pytest.mark.parametrize("common", [0, 2, 3, 200])
def test_images_of_the_test_are_not_trained_on(tmp_path: Path, common: int) -> None:
    """One in a hundred may be there twice, as in published data sets."""
    pixels = np.random.default_rng(0).integers(0, 256, (500, 32, 32, 3), np.uint8)
    rows = {"train": slice(0, 300), "test": slice(300 - common, 500 - common)}
    for split, chosen in rows.items():
        labels = np.arange(500)[chosen] % 10
        np.savez(tmp_path / f"{split}.npz", images=pixels[chosen], labels=labels)
    source = {"kind": "npz", "path": str(tmp_path / "{split}.npz")}
    train_split, test_split = (built(tmp_path / split, source, split) for split in rows)
    if common <= 2:
        assert trained((train_split, test_split), tmp_path, **PLAIN | {"epochs": 2})
        return
    sentence = f"{common} of the 200 images of the split test of mine are in the split train"
    assert refusal(trained, (train_split, test_split), tmp_path).startswith(sentence)


def read_events(folder: Path, name: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder / EVENTS), purge_orphaned_data=True).Reload()
    return [(event.step, event.value) for event in found.Scalars(name)]


def write_events(folder: Path, done: int, losses: dict[int, float]) -> None:
    with TrainingEvents(folder, done) as events:
        for epoch, loss in losses.items():
            events.write({"epoch": epoch, "loss": loss})


def test_each_number_of_an_epoch_is_an_event_once(tmp_path: Path) -> None:
    write_events(tmp_path, 0, {1: 0.5, 2: 0.25, 3: 4.0})
    assert read_events(tmp_path, "loss") == [(1, 0.5), (2, 0.25), (3, 4.0)]
    # Files of one process and second are numbered, and read in the order of letters: 10 before 9.
    time.sleep(1)
    # An epoch that is done again.
    write_events(tmp_path, 2, {3: 0.125})
    assert read_events(tmp_path, "loss") == [(1, 0.5), (2, 0.25), (3, 0.125)]
    # A training that begins anew.
    write_events(tmp_path, 0, {1: 8.0})
    assert read_events(tmp_path, "loss") == [(1, 8.0)]
