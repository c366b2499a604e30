"""Robustness: the views of images, their scores, and the mean corruption error."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.splits import CENTER, SPREAD, built, on_model, shapes
from vitscope.corruptions import CORRUPTIONS
from vitscope.corruptions.building import build
from vitscope.corruptions.corrupted import CorruptedImages
from vitscope.corruptions.registry import corrupt
from vitscope.data.image_rows import known_labels
from vitscope.data.split import Split, normalize
from vitscope.errors import VitscopeError
from vitscope.jobs.tables import find_table
from vitscope.measures.robustness.compute import (
    View,
    clean_view,
    corrupted_views,
    measure,
    scored,
)
from vitscope.networks.running.predictions import predict

IMAGES, SEVERITIES = 30, [1, 3, 5]
LOADED = (7, CENTER, SPREAD)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def split(folder: Path) -> Split:
    return shapes(folder / "test.safetensors", 50)


@pytest.fixture(scope="module")
def corrupted(folder: Path, split: Split) -> list[CorruptedImages]:
    """Return the images of every corruption."""
    paths = [folder / f"{name}.safetensors" for name in CORRUPTIONS]
    for name, path in zip(CORRUPTIONS, paths, strict=True):
        build(split, IMAGES, name, SEVERITIES, 0, path)
    return [CorruptedImages(path) for path in paths]


class Linear(nn.Module):
    """A small network with weights that are always the same."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.randn(10, 3 * 32 * 32, generator=generator) / 30

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1) @ self.weight.T


def measured(views: Iterator[View] | list[View], split: Split, rows: list[int]) -> pd.DataFrame:
    labels = known_labels(split, rows)
    model = Linear()
    return pd.concat(
        [scored("linear", view, predict(model, view.batches, labels), 10) for view in views],
        ignore_index=True,
    )


def test_grey_images_under_every_corruption(tmp_path: Path) -> None:
    source = {"kind": "shapes32", "seed": 0}
    grey = built(tmp_path / "grey", source, images=8, channels=1)
    network = nn.Sequential(nn.Flatten(), nn.Linear(32 * 32, 10))
    for name in CORRUPTIONS:
        build(grey, None, name, [5], 0, tmp_path / name)
    views = [CorruptedImages(tmp_path / name) for name in CORRUPTIONS]
    given = on_model(network, grey, corrupted=views)
    given = replace(given, settings=given.settings | {"mean": [0.5], "std": [0.2]})
    table = measure(given, CORRUPTIONS, clean=True)
    assert table["corruption"].tolist() == ["none", *CORRUPTIONS]


def test_wrong_labels_are_noticed_on_images_as_they_are(tmp_path: Path) -> None:
    images = shapes(tmp_path / "images", 200)
    build(images, None, "fog", [5], 0, tmp_path / "fog")
    corrupted = [CorruptedImages(tmp_path / "fog")]
    for clean in (True, False):
        given = on_model(Linear(), images, corrupted=corrupted)
        measure(given, ["fog"], clean)
        assert len(given.warnings) == clean
        assert all("no better than chance" in warning for warning in given.warnings)


def test_views_show_the_same_images(split: Split, corrupted: list[CorruptedImages]) -> None:
    rows = corrupted[0].rows
    assert all(each.rows.tolist() == rows.tolist() for each in corrupted)
    clean = clean_view(split, rows.tolist(), *LOADED)
    assert (clean.corruption, clean.severity) == ("none", 0)
    expected = normalize(split.images(rows), *LOADED[1:])
    assert torch.equal(torch.cat(list(clean.batches)), expected)
    # All views are made before the first is read.
    views = [view for each in corrupted for view in corrupted_views(each, *LOADED)]
    assert [(v.corruption, v.severity) for v in views] == [
        (name, severity) for name in CORRUPTIONS for severity in SEVERITIES
    ]
    for view in views:
        ours = corrupt(split.images(rows), view.corruption, view.severity, rows)
        assert torch.equal(torch.cat(list(view.batches)), normalize(ours, *LOADED[1:]))


def test_scores_are_of_the_images_of_the_view(
    split: Split, corrupted: list[CorruptedImages]
) -> None:
    fog = corrupted[CORRUPTIONS.index("fog")]
    table = measured(corrupted_views(fog, *LOADED), split, fog.rows.tolist())
    assert table["severity"].tolist() == SEVERITIES
    assert set(table["images"]) == {IMAGES}
    labels = torch.from_numpy(split.labels[fog.rows])
    for row in table.itertuples():
        with torch.inference_mode():
            logits = Linear()(normalize(fog.images(row.severity), *LOADED[1:])).double()
        right = (logits.argmax(1) == labels).double().mean()
        assert row.accuracy == pytest.approx(float(right), abs=1e-12)
        nll = nn.functional.cross_entropy(logits, labels)
        assert row.nll == pytest.approx(float(nll), rel=1e-6)
        assert 0 <= row.ece <= 1


@pytest.mark.parametrize("size", [1, 4, 15])
def test_any_number_of_corruptions_per_job_gives_the_same(
    split: Split, corrupted: list[CorruptedImages], size: int, tmp_path: Path
) -> None:
    rows = corrupted[0].rows.tolist()
    parts = []
    for first in range(0, len(corrupted), size):
        views = [
            v for each in corrupted[first : first + size] for v in corrupted_views(each, *LOADED)
        ]
        path = tmp_path / f"{first}.parquet"
        find_table("robustness").write(measured(views, split, rows), path)
        parts.append(find_table("robustness").read(path))
    whole = measured([v for each in corrupted for v in corrupted_views(each, *LOADED)], split, rows)
    merged = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(merged, whole, check_exact=True, check_dtype=False)


def test_a_job_classifies_images_as_they_are_first(
    split: Split, corrupted: list[CorruptedImages], tmp_path: Path
) -> None:
    given = on_model(Linear(), split, corrupted=corrupted[:2])
    rows = corrupted[0].rows.tolist()
    views = [view for each in corrupted[:2] for view in corrupted_views(each, *LOADED)]
    whole = measured([clean_view(split, rows, *LOADED), *views], split, rows)
    whole["model"] = "net"
    for clean, expected in ((True, whole), (False, whole[1:])):
        table = measure(given, CORRUPTIONS[:2], clean)
        pd.testing.assert_frame_equal(
            table.reset_index(drop=True), expected.reset_index(drop=True), check_exact=True
        )
    find_table("robustness").write(table, tmp_path / "table.parquet")


def test_images_without_labels_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", images=np.zeros((4, 32, 32, 3), np.uint8))
    source = {"kind": "npz", "path": str(tmp_path / "all.npz")}
    split = built(tmp_path / "test.safetensors", source)
    build(split, None, "fog", [1], 0, tmp_path / "fog.safetensors")
    fog = CorruptedImages(tmp_path / "fog.safetensors")
    with pytest.raises(VitscopeError, match=r"data\.mine: 4 of 4 images have no label"):
        measured(corrupted_views(fog, *LOADED), split, fog.rows.tolist())


def test_logits_that_are_no_numbers_are_refused(
    split: Split, corrupted: list[CorruptedImages]
) -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.full((len(images), 10), torch.nan)

    view = next(corrupted_views(corrupted[0], *LOADED))
    labels = known_labels(split, corrupted[0].rows.tolist())
    with pytest.raises(VitscopeError, match="logits that are not finite"):
        predict(Broken(), view.batches, labels)
