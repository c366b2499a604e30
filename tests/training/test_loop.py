"""Training: a tiny model learns in seconds, and the same seed gives the same bytes."""

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.helpers.splits import built
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.networks.family import find_family
from vitscope.networks.loading import load_model
from vitscope.training.augmentation import augmentation, batches, mixing
from vitscope.training.loop import accuracy, train
from vitscope.training.optimization import learning_rate
from vitscope.training.seeding import seeded

MEAN, STD = [0.5] * 3, [0.25] * 3
NETWORK: dict[str, Any] = {
    "family": "resnet",
    "arch": {"block": "basic", "blocks": [1, 1], "width": 8},
    "classes": 10,
    "image_size": 32,
    "mean": MEAN,
}
RECIPE: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 50,
    "learning_rate": 5e-3,
    "final_learning_rate": 1e-4,
    "warmup_epochs": 1,
    "weight_decay": 0.05,
    "label_smoothing": 0.1,
    "mixup": 0.8,
    "cutmix": 1.0,
    "mixing_probability": 0.3,
    "randaugment": "rand-m5-n1-mstd0.5",
    "shift": 2,
    "flip": True,
    "clip_gradient": 1.0,
    "bfloat16": True,
    "snapshot_dtype": "float32",
    "images": None,
    "seed": 0,
    "trajectory": False,
    "erasing": 0.0,
}
PLAIN = RECIPE | {"mixup": 0.0, "cutmix": 0.0, "randaugment": None, "shift": 0, "flip": False}
NO_NEWS = {"mean": MEAN, "std": STD, "say": lambda text: None}


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Split, Split]:
    folder = tmp_path_factory.mktemp("shapes32")
    source = {"kind": "shapes32", "seed": 0}
    train = built(folder / "train", source, "train", images=1000, seed=0)
    return train, built(folder / "test", source, images=200, seed=0)


def trained(
    splits: tuple[Split, Split], folder: Path, seed: int = 0, **changes: Any
) -> list[dict[str, float]]:
    family = find_family(NETWORK["family"])
    with seeded(seed):
        model = family.build(NETWORK["arch"], 10, 32)
    return train(model, *splits, RECIPE | changes, seed, folder, **NO_NEWS)


def test_a_model_learns_and_its_snapshots_are_checkpoints(
    splits: tuple[Split, Split], tmp_path: Path
) -> None:
    history = trained(splits, tmp_path)
    losses = [row["loss"] for row in history]
    assert [row["epoch"] for row in history] == [1, 2, 3, 4]
    assert all(after < before for before, after in pairwise(losses))
    assert history[-1]["learning_rate"] == pytest.approx(RECIPE["final_learning_rate"])
    assert history[-1]["test_accuracy"] > 0.2
    accuracies = {}
    for name in ("init", "warmup", "end"):
        path = tmp_path / f"{name}.safetensors"
        accuracies[name] = accuracy(load_model(path, NETWORK), splits[1], MEAN, STD)
        facts = TensorFile(path).metadata
        assert facts["snapshot"] == name
        assert json.loads(facts["recipe"]) == RECIPE
    assert accuracies["warmup"] == history[0]["test_accuracy"]
    assert accuracies["end"] == history[-1]["test_accuracy"]
    assert accuracies["init"] < 0.2


@pytest.mark.nightly
def test_the_seed_fixes_the_bytes(splits: tuple[Split, Split], tmp_path: Path) -> None:
    short = {"epochs": 2, "mixing_probability": 0.5}
    for folder, seed in (("one", 0), ("two", 0), ("other", 1)):
        random.random()  # What was drawn before makes no difference.
        trained(splits, tmp_path / folder, seed, **short)
    for name in ("init", "warmup", "end"):
        one, two, other = (
            (tmp_path / folder / f"{name}.safetensors").read_bytes()
            for folder in ("one", "two", "other")
        )
        assert one == two
        assert one != other


def test_the_trajectory_is_that_of_the_snapshots(
    splits: tuple[Split, Split], tmp_path: Path
) -> None:
    history = trained(splits, tmp_path, **PLAIN | {"epochs": 3, "trajectory": True})
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".safetensors"]
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
    names = [name for name, _ in load_model(path, NETWORK).named_parameters()]
    return np.concatenate([file.array(name).ravel() for name in names]).astype(np.float64)


def test_half_precision_halves_the_snapshots(splits: tuple[Split, Split], tmp_path: Path) -> None:
    short = PLAIN | {"epochs": 2}
    for dtype in ("float32", "float16"):
        trained(splits, tmp_path / dtype, **short | {"snapshot_dtype": dtype})
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
        rate = learning_rate(recipe, 3 + step / steps)
        assert rate == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        scheduler.step()
    line = [learning_rate(recipe, step / steps) for step in range(3 * steps + 1)]
    np.testing.assert_allclose(line, np.linspace(0, recipe["learning_rate"], 3 * steps + 1))


def test_an_epoch_shows_every_image_once_with_its_label(splits: tuple[Split, Split]) -> None:
    split = splits[1]
    with seeded(0):
        shown = list(batches(split, np.arange(len(split)), 30, augmentation(PLAIN, MEAN)))
        again = list(batches(split, np.arange(len(split)), 30, augmentation(PLAIN, MEAN)))
    assert [len(labels) for _, labels in shown] == [30] * 6
    by_pixels = {
        image.tobytes(): label
        for image, label in zip(split.images(slice(None)), split.labels, strict=True)
    }
    pairs = [pair for images, labels in shown for pair in zip(images, labels, strict=True)]
    assert len({image.tobytes() for image, _ in pairs}) == 180
    assert all(by_pixels[image.tobytes()] == label for image, label in pairs)
    assert not np.array_equal(shown[0][1], again[0][1])


def test_augmentation_shifts_and_flips() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    augment = augmentation(PLAIN | {"shift": 1, "flip": True}, MEAN)
    padded = np.pad(pixels, ((1, 1), (1, 1), (0, 0)), mode="reflect")
    windows = [padded[y : y + 32, x : x + 32] for y in range(3) for x in range(3)]
    allowed = {image.tobytes() for w in windows for image in (w, w[:, ::-1])}
    with seeded(0):
        found = {augment(pixels).tobytes() for _ in range(300)}
    assert found == allowed


def test_randaugment_changes_images_and_keeps_their_form() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    augment = augmentation(PLAIN | {"randaugment": RECIPE["randaugment"]}, MEAN)
    with seeded(0):
        images = [augment(pixels) for _ in range(50)]
    assert {(image.shape, image.dtype.name) for image in images} == {((32, 32, 3), "uint8")}
    assert len({image.tobytes() for image in images}) > 10


@pytest.mark.parametrize("policy", ["rand-m9-n2-mstd0.5", "rand-m9-n3-mstd0.5-inc1"])
def test_a_grey_image_is_augmented_as_the_same_image_in_colour(policy: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 1), dtype=np.uint8)
    recipe = PLAIN | {"randaugment": policy, "shift": 2, "flip": True}
    grey, colour = augmentation(recipe, [0.4]), augmentation(recipe, [0.4] * 3)
    for seed in range(100):
        with seeded(seed):
            one = grey(pixels)
        with seeded(seed):
            three = colour(pixels.repeat(3, axis=2))
        np.testing.assert_array_equal(three, one.repeat(3, axis=2))


@pytest.mark.parametrize("mixed", [True, False])
def test_targets_are_smoothed_labels(mixed: bool) -> None:
    recipe = PLAIN | ({"mixup": 0.8, "mixing_probability": 0.0} if mixed else {})
    images, labels = torch.zeros(4, 3, 8, 8), torch.tensor([3, 1, 4, 1])
    _, targets = mixing(recipe, 10)(images, labels)
    loss = nn.functional.cross_entropy(torch.arange(40.0).view(4, 10).sin(), targets)
    expected = nn.functional.cross_entropy(
        torch.arange(40.0).view(4, 10).sin(), labels, label_smoothing=0.1
    )
    torch.testing.assert_close(loss, expected)


def test_mixed_images_have_mixed_targets() -> None:
    recipe = RECIPE | {"mixing_probability": 1.0, "label_smoothing": 0.0, "cutmix": 0.0}
    labels = torch.tensor([0, 1])
    images = torch.tensor([0.0, 1.0])[:, None, None, None].expand(2, 3, 8, 8).clone()
    with seeded(0):
        mixed, targets = mixing(recipe, 2)(images, labels)
    # Images show the number of their class: so the mean pixel is the share of class 1.
    torch.testing.assert_close(mixed.mean((1, 2, 3)), targets[:, 1])
    assert 0 < targets[0, 1] < 1


def test_fused_attention_is_off_in_training_only(
    splits: tuple[Split, Split], tmp_path: Path
) -> None:
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
        ({"batch_size": 51}, "batch_size is 51, and mixup and CutMix need an even one"),
        ({"warmup_epochs": 4}, "warmup_epochs is 4 of 4 epochs"),
        ({"randaugment": "rand-m5-x3"}, "randaugment is 'rand-m5-x3'"),
        ({"learning_rate": 1e9, "clip_gradient": 1e30}, "diverged in epoch 1: lower training"),
    ],
)
def test_recipes_that_cannot_be_followed(
    splits: tuple[Split, Split], tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        trained(splits, tmp_path, **changes)


def test_labels_must_be_known(splits: tuple[Split, Split], tmp_path: Path) -> None:
    sample = built(tmp_path / "sample", {"kind": "sample"}, "train", seed=0, resize=32)
    with pytest.raises(VitscopeError, match="split train of mine has images without labels"):
        trained((sample, splits[1]), tmp_path, batch_size=1)
