"""Patches that are dropped or shuffled, against plain loops and networks whose answer is known."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from tests.helpers import networks
from tests.helpers.splits import CENTER, SPREAD, built, on_model, shapes
from tests.measures.disturbed.seeing import batches, seen_of, study_of
from vitscope.data.split import Split
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize
from vitscope.measures.disturbed.classify import shares_found
from vitscope.measures.disturbed.measure import count_dropped, occlusion_grid, occlusion_grids
from vitscope.measures.disturbed.occlusion import (
    PatchChange,
    drop_patches,
    list_patch_changes,
    mean_kept,
    measure_occlusion,
    occlusion_table,
    patch_disturbance,
    patch_orders,
    shuffle_patches,
)
from vitscope.studies.loading import load_study

BOOTSTRAP = {"resamples": 200, "seed": 3}
CUT = {"grid": 8, "shares": [0.5, 0.9], "shuffled_grids": [2, 4]}
DRAWN = {"draws": 2, "seed": 5}
BLACK = torch.tensor([-2.0, -1.5, 0.25]).view(3, 1, 1)


@pytest.mark.parametrize(
    ("size", "grid", "grids"),
    [
        (224, 14, [2, 4, 7, 8, 14]),
        (32, 8, [2, 4, 8]),
        (384, 12, [2, 3, 4, 6, 8, 12]),
        (299, 13, [13]),
        ((32, 48), 8, [2, 4, 8]),
    ],
)
def test_grids_are_those_that_fit(size: ImageSize, grid: int, grids: list[int]) -> None:
    assert occlusion_grid(None, size) == grid
    assert occlusion_grids(None, size) == grids
    assert occlusion_grid(grids[0], size) == grids[0]


def test_patches_are_counted_as_the_authors_do() -> None:
    # For a share of k tenths, their code drops k * 196 // 10 patches.
    counts = [count_dropped(k / 10, 14) for k in range(11)]
    assert counts == [k * 196 // 10 for k in range(11)]
    # The product of floats is below 29.
    assert int(0.29 * 100) == 28
    assert count_dropped(0.29, 10) == 29


def test_changes_are_in_order() -> None:
    assert list_patch_changes(None, [0.5, 0.1], [4, 2], 224) == [
        PatchChange("dropped", 14, 19),
        PatchChange("dropped", 14, 98),
        PatchChange("shuffled", 2, 0),
        PatchChange("shuffled", 4, 0),
    ]


def test_draws_are_those_of_today_on_every_machine() -> None:
    """Pin the random stream: if it changed, results would change."""
    assert patch_orders(0, [0], 0, 9).tolist() == [[8, 2, 1, 7, 6, 5, 0, 3, 4]]
    assert patch_orders(7, [1999], 4, 9).tolist() == [[7, 1, 4, 2, 5, 0, 8, 3, 6]]


def test_orders_of_an_image_are_its_own_and_all_patches_are_as_likely() -> None:
    rows = [3, 10, 2**40]
    together = patch_orders(1, rows, 2, 16)
    np.testing.assert_array_equal(np.sort(together), np.tile(np.arange(16), (3, 1)))
    for row, order in zip(rows, together, strict=True):
        np.testing.assert_array_equal(patch_orders(1, [row], 2, 16)[0], order)
    assert (
        len({tuple(patch_orders(s, [r], d, 16)[0]) for s in (0, 1) for r in (0, 1) for d in (0, 1)})
        == 8
    )
    many = patch_orders(0, range(3000), 0, 16)
    counts = np.stack([np.bincount(column, minlength=16) for column in many.T])
    # The expected count is 187.5 with a deviation of 13.3.
    assert np.abs(counts - 3000 / 16).max() < 5 * 13.3


def changed_plainly(images: Array, order: Array, each: PatchChange, black: Array) -> Array:
    result = images.copy()
    height, width = (side // each.grid for side in images.shape[2:])

    def place(patch: int) -> tuple[slice, slice]:
        row, column = divmod(int(patch), each.grid)
        down, across = row * height, column * width
        return slice(down, down + height), slice(across, across + width)

    for number in range(len(images)):
        if each.change == "dropped":
            for patch in order[number, : each.dropped]:
                result[(number, slice(None), *place(patch))] = black
        else:
            for target, source in enumerate(order[number]):
                moved = images[(number, slice(None), *place(source))]
                result[(number, slice(None), *place(target))] = moved
    return result


def some_images(count: int, height: int = 24, width: int = 24) -> Array:
    return np.random.default_rng(0).normal(size=(count, 3, height, width)).astype(np.float32)


@pytest.mark.parametrize("size", [(24, 24), (24, 48)])
@pytest.mark.parametrize(
    "each",
    [PatchChange("dropped", 4, 0), PatchChange("dropped", 8, 23), PatchChange("dropped", 3, 9)]
    + [PatchChange("shuffled", grid, 0) for grid in (2, 8, 12)],
)
def test_patches_are_changed_as_by_a_plain_loop(size: tuple[int, int], each: PatchChange) -> None:
    images, order = some_images(5, *size), patch_orders(0, range(5), 1, each.grid**2)
    tensors = torch.from_numpy(images)
    if each.change == "dropped":
        ours = drop_patches(tensors, order, each.dropped, each.grid, BLACK)
    else:
        ours = shuffle_patches(tensors, order, each.grid)
    np.testing.assert_array_equal(ours, changed_plainly(images, order, each, BLACK.numpy()))
    if each.change == "shuffled":
        # The pixels are the same, moved with all of their channels.
        assert not torch.equal(ours, tensors)
        for new, old in zip(ours.numpy(), images, strict=True):
            pixels = [sorted(map(tuple, of.reshape(3, -1).T.tolist())) for of in (new, old)]
            assert pixels[0] == pixels[1]
    if each.dropped == 0 and each.change == "dropped":
        assert torch.equal(ours, tensors)
    if each.dropped == each.grid**2:
        assert torch.equal(ours, BLACK.expand_as(ours))


@pytest.mark.parametrize("size", [1, 3, 7])
def test_every_model_gets_the_same_whatever_the_batches(size: int) -> None:
    images, rows = some_images(7), [3, 4, 8, 9, 11, 100, 101]
    changes = list_patch_changes(8, [0.5, 1], [2, 3], 24)
    disturb = patch_disturbance(changes, DRAWN, BLACK)
    clean, *disturbed = seen_of(images, rows, size, disturb, 2 * len(changes))
    np.testing.assert_array_equal(clean, images)
    for arrived, (draw, each) in zip(disturbed, product((0, 1), changes), strict=True):
        plain = changed_plainly(
            images, patch_orders(5, rows, draw, each.grid**2), each, BLACK.numpy()
        )
        np.testing.assert_array_equal(arrived, plain)


class BagOfPatches(nn.Module):
    """Classifies by the mean over patches of the logits that a small network gives to each."""

    def __init__(self, patch: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Conv2d(3, 16, patch, stride=patch)
        self.head = nn.Conv2d(16, 10, 1)

    def forward(self, images: Tensor) -> Tensor:
        # In double precision, predictions do not depend on the order of a sum.
        return self.head(self.embed(images).relu()).double().mean((2, 3))


def predicted(model: nn.Module, images: Array) -> Array:
    with torch.inference_mode():
        labels: Array = model(torch.from_numpy(images)).argmax(1).numpy()
    return labels


def shares_of(model: nn.Module, images: Array, changes: Sequence[PatchChange]) -> Array:
    """Return for each image and change the share of draws in which the prediction stays."""
    disturb, labels = patch_disturbance(changes, DRAWN, BLACK), predicted(model, images)
    rows = range(len(images))
    found, shares = shares_found(model, batches(images, 16), rows, labels, disturb)
    assert found.all()
    return shares


def test_a_bag_of_patches_does_not_see_their_order() -> None:
    images = some_images(40, 32, 32)
    grids = [PatchChange("shuffled", grid, 0) for grid in (2, 4, 8, 16)]
    shares = shares_of(BagOfPatches(4), images, grids)
    # Grids of 2, 4 and 8 move whole patches; a grid of 16 cuts them.
    assert (shares[:, :3] == 1).all()
    assert (shares[:, 3] < 1).any()


def test_nothing_dropped_is_the_image_and_everything_dropped_is_a_black_one() -> None:
    images = some_images(40, 32, 32)
    model, _ = networks.mini("vit")
    ends = [PatchChange("dropped", 8, 0), PatchChange("dropped", 8, 64)]
    shares = shares_of(model, images, ends)
    assert (shares[:, 0] == 1).all()
    black = BLACK.expand(1, 3, 32, 32).numpy()
    stays = predicted(model, images) == predicted(model, black)
    np.testing.assert_array_equal(shares[:, 1], stays)


def test_a_probe_of_the_first_patch_finds_as_many_as_have_it() -> None:
    """Each patch is dropped as often as the share of dropped patches says."""

    class Probe(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            light = images[:, 0, 0, 0]
            return torch.stack([torch.full_like(light, 0.5), light], dim=1)

    white, rows = np.ones((800, 3, 16, 16), np.float32), range(800)
    changes = list_patch_changes(4, [0.25, 0.75], [2], 16)
    disturb = patch_disturbance(changes, {"draws": 5, "seed": 0}, torch.zeros(3, 1, 1))
    found, shares = shares_found(Probe(), batches(white, 100), rows, np.ones(800, int), disturb)
    assert found.all()
    deviation = np.sqrt(0.25 * 0.75 / 4000)
    np.testing.assert_allclose(shares.mean(axis=0), [0.75, 0.25, 1], atol=5 * deviation)


def test_the_table_has_accuracies_and_what_is_kept() -> None:
    clean = np.array([True, True, False, True])
    shares = np.array([[1, 0.5, 0], [0.5, 0, 1], [0.5, 0, 0], [1, 0, 0.5]])
    changes = list_patch_changes(8, [0.9, 0.5], [2], 32)
    table = occlusion_table("net", clean, shares, changes, 10, 2, BOOTSTRAP)
    assert table["change"].tolist() == ["none", "dropped", "dropped", "shuffled"]
    assert table["dropped"].tolist() == [0, 32, 57, 0]
    assert table["share"].tolist() == [0, 0.5, 57 / 64, 0]
    assert table["accuracy"].tolist() == [0.75, 0.75, 0.125, 0.375]
    dropped = (0.75 + 0.125) / 2 / 0.75
    np.testing.assert_allclose(table["mean_kept"], [1, dropped, dropped, 0.5], rtol=1e-12)
    assert ((table["ci_low"] <= table["accuracy"]) & (table["accuracy"] <= table["ci_high"])).all()
    assert (table["kept_low"] <= table["mean_kept"]).all()


def test_resamples_are_ratios_of_the_same_images_drawn_again() -> None:
    generator = np.random.default_rng(0)
    clean, disturbed = generator.random(40) < 0.8, generator.random((40, 3))
    _, low, high, kept = mean_kept(clean, disturbed, **BOOTSTRAP).values()
    expected = []
    for times in np.random.default_rng(3).multinomial(40, [1 / 40] * 40, size=200):
        rows = np.repeat(np.arange(40), times)
        expected.append(disturbed[rows].mean() / clean[rows].mean())
    np.testing.assert_allclose(kept, expected, rtol=1e-6)
    assert (low, high) == pytest.approx(np.percentile(expected, [2.5, 97.5]), rel=1e-12)


def test_without_accuracy_nothing_can_be_kept() -> None:
    value, low, high, kept = mean_kept(np.zeros(5), np.ones((5, 2)), 10, 0).values()
    assert np.isnan([value, low, high, *kept]).all()
    value, low, high, kept = mean_kept(np.ones(1), np.full((1, 2), 0.5), 10, 0).values()
    assert (value, kept) == (0.5, None)
    assert np.isnan([low, high]).all()
    # The class of one of two images is found; in a quarter of the resamples, no class is.
    value, low, high, kept = mean_kept(np.arange(2), np.ones((2, 2)), 64, 0).values()
    assert value == 2
    assert np.isnan([low, high]).all()
    assert 0 < np.isnan(kept).sum() < 64


def measured(network: nn.Module, images: Split, **settings: Any) -> pd.DataFrame:
    given = on_model(network, images, **settings)
    return measure_occlusion(given, {"images": 12, "seed": 1}, CUT, DRAWN, BOOTSTRAP)


def test_a_job_measures_pixels_that_are_black(tmp_path: Path) -> None:
    images, network = shapes(tmp_path / "split", 30), networks.mini("resnet")[0]
    table = measured(network, images)
    rows = np.sort(np.random.default_rng(1).permutation(30)[:12]).tolist()
    pixels = images.images(rows)
    expected = []
    for each in [PatchChange("none", 1, 0), *list_patch_changes(**CUT, size=32)]:
        found = []
        for draw in range(2):
            order = patch_orders(5, rows, draw, each.grid**2)
            zero = np.zeros((3, 1, 1), np.uint8)
            new = changed_plainly(pixels, order, each, zero) / np.float32(255)
            center, spread = (np.array(v, np.float32).reshape(3, 1, 1) for v in (CENTER, SPREAD))
            found.append(predicted(network, (new - center) / spread) == images.labels[rows])
        expected.append(np.mean(found))
    np.testing.assert_allclose(table["accuracy"], expected, rtol=1e-12)
    assert set(table["chance"]) == {0.1}
    again = measured(network, images, batch_size=5)
    pd.testing.assert_frame_equal(again, table, check_exact=True)


def test_grey_images_are_changed_too(tmp_path: Path) -> None:
    grey = built(tmp_path / "grey", {"kind": "shapes32", "seed": 0}, images=12, channels=1)
    network = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 10))
    settings = {"mean": [0.5], "std": [0.2], "classes": 10, "image_size": 32}
    given = on_model(network, grey)
    given.settings.update(settings)
    assert len(measure_occlusion(given, {"images": None, "seed": None}, CUT, DRAWN, BOOTSTRAP)) == 5


def test_grids_matter_only_where_a_figure_shows_them(tmp_path: Path) -> None:
    load_study(study_of(tmp_path, "spectrum", [32, 33], occlusion={"grid": 14}))
