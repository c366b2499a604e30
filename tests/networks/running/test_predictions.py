from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tests.helpers.golden import Golden
from tests.helpers.networks import MINI, every_mini
from tests.helpers.refusals import refusal
from tests.helpers.splits import built
from tests.scopes.networks import CHANNELS, Convolutions, Transformer, network
from vitscope.data.split import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import find_family
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.running.predictions import (
    BY_LABEL,
    predict,
    refuse_unrepeatable_predictions,
    score_predictions,
    why_predictions_differ,
)


def drawn(images: int, classes: int, seed: int = 0, scale: float = 3) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(images, classes, generator=generator)
    return logits, torch.randint(classes, (images,), generator=generator)


class Echo(nn.Module):
    """A model whose logits are the images themselves."""

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)


@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(2, 20), st.integers(0, 99), st.floats(0.01, 30))
def test_scores_are_those_of_torch(images: int, classes: int, seed: int, scale: float) -> None:
    logits, labels = drawn(images, classes, seed, scale)
    ours = score_predictions(logits, labels)
    probability = torch.softmax(logits.double(), 1)
    exact = {"rtol": 0, "atol": 1e-13}
    torch.testing.assert_close(ours["confidence"], probability.max(1).values, **exact)
    torch.testing.assert_close(ours["prediction"], probability.max(1).indices, **exact)
    nll = cross_entropy(logits.double(), labels, reduction="none")
    torch.testing.assert_close(ours["nll"], nll, rtol=1e-13, atol=1e-13)
    truth = torch.eye(classes, dtype=torch.float64)[labels]
    torch.testing.assert_close(ours["brier"], ((probability - truth) ** 2).sum(1), **exact)
    top = logits.topk(min(5, classes), dim=1).indices.tolist()
    assert ours["top5"].tolist() == [
        label in row for label, row in zip(labels.tolist(), top, strict=True)
    ]
    assert ours["label"] is labels


def test_extreme_and_equal_logits() -> None:
    # Nothing overflows, and small errors are not lost.
    ours = score_predictions(torch.tensor([[1e30, -1e30], [1e30, -1e30]]), torch.tensor([0, 1]))
    assert ours["confidence"].tolist() == [1, 1]
    assert ours["brier"].tolist() == [0, 2]
    assert ours["nll"].tolist() == pytest.approx([0, 2e30])
    brier = score_predictions(torch.tensor([[30.0, 0.0]]), torch.tensor([0]))["brier"]
    assert brier.item() == pytest.approx(2 * np.exp(-60), rel=1e-2)
    # Of equal logits the first class is predicted, and all are on top.
    ours = score_predictions(torch.zeros(10, 10), torch.arange(10))
    assert ours["prediction"].tolist() == [0] * 10
    assert ours["top5"].all()


@settings(max_examples=30)
@given(st.lists(st.integers(1, 59), max_size=6))
def test_any_batches_give_the_same(ends: list[int]) -> None:
    logits, labels = drawn(60, 10)
    edges = [0, *sorted(set(ends)), 60]
    batches = [logits[first:last, :, None, None] for first, last in pairwise(edges)]
    whole = predict(Echo(), [logits[:, :, None, None]], labels.numpy())
    pd.testing.assert_frame_equal(predict(Echo(), batches, labels.numpy()), whole, check_exact=True)
    np.testing.assert_array_equal(whole["prediction"], logits.argmax(1))


def test_a_model_is_judged_as_it_is_used() -> None:
    """Dropout is off, and the statistics of a batch play no part and do not change."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(12), nn.Dropout(0.9), nn.Linear(12, 4))
    images = torch.randn(20, 3, 2, 2)
    labels = np.zeros(20, np.int64)
    with torch.inference_mode():
        expected = model.eval()(images).argmax(1)
    model.train()
    for _ in range(2):
        predictions = predict(model, images.split(5), labels)
        np.testing.assert_array_equal(predictions["prediction"], expected)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_logits_that_are_not_finite_are_refused_with_their_batch(value: float) -> None:
    logits, labels = drawn(60, 10)
    logits[40:42, 3] = value
    assert refusal(predict, Echo(), logits.split(16), labels.numpy()) == (
        "The Echo gives logits that are not finite for 2 of the images 32 to 47 of those "
        "classified: check its checkpoint, and the mean and std of its data."
    )


def test_no_images_and_another_number_of_images_are_refused() -> None:
    assert "no image to classify" in refusal(predict, Echo(), [], np.zeros(0, np.int64))
    logits, labels = drawn(60, 10)
    with pytest.raises(ValueError, match="got 48 images, expected 60"):
        predict(Echo(), logits[:48].split(16), labels.numpy())


def test_from_the_artefact_to_the_table(tmp_path: Path) -> None:
    images = built(tmp_path / "split", {"kind": "shapes32", "seed": 0}, images=40, seed=0)
    rows = rows_to_classify(images, 12, 0)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10))
    batches = images.batches(rows, 5, [0.5] * 3, [0.25] * 3)
    some = predict(model, batches, known_labels(images, rows))
    everything = images.batches(range(40), 40, [0.5] * 3, [0.25] * 3)
    whole = predict(model, everything, known_labels(images, range(40)))
    pd.testing.assert_frame_equal(some, whole.iloc[rows].reset_index(drop=True), rtol=1e-5)


@pytest.mark.parametrize("name", ["resnet_50", "vit_ti"])
def test_likelihoods_of_the_authors(golden: Golden, name: str) -> None:
    images, labels = golden.images(16)
    predictions = predict(golden.model(name), images.split(8), labels.numpy())
    assert predictions["nll"].mean() == pytest.approx(golden.expected[name]["nll"], rel=1e-5)


@every_mini
def test_grey_images_go_through_networks_of_one_channel(name: str, tmp_path: Path) -> None:
    grey = built(tmp_path / "grey", {"kind": "shapes32", "seed": 0}, images=6, channels=1)
    entry = MINI[name]
    network = find_family(entry["family"]).build(entry["arch"], 10, 32, grey.shape[0])
    batches = grey.batches(range(6), 4, [0.5], [0.25])
    assert len(predict(network, batches, np.array(grey.labels))) == 6


def test_images_without_a_label_are_classified() -> None:
    logits, labels = drawn(60, 10)
    some = labels.clone()
    some[::3] = -1
    found = predict(Echo(), logits.split(16), some.numpy())
    known = predict(Echo(), logits.split(16), labels.numpy())
    said = ["prediction", "confidence"]
    pd.testing.assert_frame_equal(found[said], known[said])
    by_label, unknown = [*BY_LABEL], found.index[::3]
    assert found.loc[unknown, by_label].isna().all(axis=None)
    rest = found[by_label].drop(index=unknown)
    assert (rest == known[by_label].drop(index=unknown)).all(axis=None)


IMAGE = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0))


class Noise(Convolutions):
    """Adds noise to images, in evaluation as well, or the same each time."""

    seed: int | None = None

    def forward(self, images: Tensor) -> Tensor:
        chance = torch.Generator()
        chance.seed() if self.seed is None else chance.manual_seed(self.seed)
        return super().forward(images + 0.01 * torch.randn(images.shape, generator=chance))


class Dropped(Convolutions):
    def forward(self, images: Tensor) -> Tensor:
        maps = self.branches[0](self.stem(images))
        return self.head(nn.functional.dropout(maps).mean((2, 3)))


def by_batch() -> nn.Module:
    model = network(Convolutions)
    model.branches[1][1] = nn.BatchNorm2d(CHANNELS, track_running_stats=False)
    return model


class Centred(Convolutions):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - images.mean())


OF_ONE_DRAW: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "noise": (lambda: network(Noise), "two passes .* from the module 'stem' on: noise"),
    "dropout": (lambda: network(Dropped), "two passes .* from the module 'head' on: noise"),
    "normalized by batches": (by_batch, r"images beside it, by branches\.1\.1, which has no"),
    "centred by batches": (lambda: network(Centred), "on the images beside it: all numbers"),
}


@pytest.mark.parametrize("kind", OF_ONE_DRAW)
def test_passes_that_differ_are_told(kind: str) -> None:
    build, sentence = OF_ONE_DRAW[kind]
    model, before = build().eval(), torch.get_rng_state()
    with pytest.raises(VitscopeError, match=sentence):
        refuse_unrepeatable_predictions(
            model, {"mean": [0.5] * 3, "image_size": 16}, torch.device("cpu")
        )
    assert why_predictions_differ(model, IMAGE)
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(module._forward_hooks for module in model.modules())


def seeded() -> nn.Module:
    model = network(Noise)
    model.seed = 3
    return model


@pytest.mark.parametrize(
    "build",
    [
        seeded,
        lambda: network(Convolutions),
        lambda: network(Transformer),
        lambda: network(Convolutions).half(),
        lambda: import_timm().create_model("test_vit", img_size=16, patch_size=4, drop_rate=0.5),
    ],
)
def test_passes_that_are_alike(build: Callable[[], nn.Module]) -> None:
    model = build().eval()
    kind = next(model.parameters()).dtype
    assert why_predictions_differ(model, IMAGE.to(kind)) is None
