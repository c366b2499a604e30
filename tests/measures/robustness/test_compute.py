"""Robustness: the views of images, their scores, and the mean corruption error."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from vitscope.corruptions import CORRUPTIONS
from vitscope.corruptions.building import build
from vitscope.corruptions.corrupted import Corrupted
from vitscope.corruptions.registry import corrupt
from vitscope.data.building import build as build_split
from vitscope.data.image_rows import known_labels
from vitscope.data.split import Split, normalized
from vitscope.errors import VitscopeError
from vitscope.measures.robustness.compute import (
    View,
    clean_view,
    corrupted_views,
    corruption_error,
    scored,
)
from vitscope.networks.predictions import predict
from vitscope.workflow.tables import find_table

IMAGES, SEVERITIES = 30, [1, 3, 5]
READING = (7, [0.5, 0.5, 0.5], [0.25, 0.25, 0.25])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def split(folder: Path) -> Split:
    dataset = {
        "source": {"kind": "shapes32", "seed": 0},
        "classes": 10,
        "image_size": 32,
        "resize": None,
        "interpolation": "bicubic",
        "splits": {"test": {"images": 50, "seed": None}},
    }
    build_split("shapes32", dataset, "test", folder / "test.safetensors")
    return Split(folder / "test.safetensors")


@pytest.fixture(scope="module")
def corrupted(folder: Path, split: Split) -> list[Corrupted]:
    """Return the images of every corruption."""
    paths = [folder / f"{name}.safetensors" for name in CORRUPTIONS]
    for name, path in zip(CORRUPTIONS, paths, strict=True):
        build(split, IMAGES, name, SEVERITIES, 0, path)
    return [Corrupted(path) for path in paths]


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


def test_views_show_the_same_images(split: Split, corrupted: list[Corrupted]) -> None:
    rows = corrupted[0].rows
    assert all(each.rows.tolist() == rows.tolist() for each in corrupted)
    clean = clean_view(split, rows.tolist(), *READING)
    assert (clean.corruption, clean.severity) == ("none", 0)
    expected = normalized(split.images(rows), *READING[1:])
    assert torch.equal(torch.cat(list(clean.batches)), expected)
    # All views are made before the first is read.
    views = [view for each in corrupted for view in corrupted_views(each, *READING)]
    assert [(v.corruption, v.severity) for v in views] == [
        (name, severity) for name in CORRUPTIONS for severity in SEVERITIES
    ]
    for view in views:
        ours = corrupt(split.images(rows), view.corruption, view.severity, rows)
        assert torch.equal(torch.cat(list(view.batches)), normalized(ours, *READING[1:]))


def test_scores_are_of_the_images_of_the_view(split: Split, corrupted: list[Corrupted]) -> None:
    fog = corrupted[CORRUPTIONS.index("fog")]
    table = measured(corrupted_views(fog, *READING), split, fog.rows.tolist())
    assert table["severity"].tolist() == SEVERITIES
    assert set(table["images"]) == {IMAGES}
    labels = torch.from_numpy(split.labels[fog.rows])
    for row in table.itertuples():
        with torch.inference_mode():
            logits = Linear()(normalized(fog.images(row.severity), *READING[1:])).double()
        right = (logits.argmax(1) == labels).double().mean()
        assert row.accuracy == pytest.approx(float(right), abs=1e-12)
        nll = nn.functional.cross_entropy(logits, labels)
        assert row.nll == pytest.approx(float(nll), rel=1e-6)
        assert 0 <= row.ece <= 1


@pytest.mark.parametrize("size", [1, 4, 15])
def test_any_number_of_corruptions_per_job_gives_the_same(
    split: Split, corrupted: list[Corrupted], size: int, tmp_path: Path
) -> None:
    rows = corrupted[0].rows.tolist()
    parts = []
    for first in range(0, len(corrupted), size):
        views = [
            v for each in corrupted[first : first + size] for v in corrupted_views(each, *READING)
        ]
        path = tmp_path / f"{first}.parquet"
        find_table("robustness").write(measured(views, split, rows), path)
        parts.append(find_table("robustness").read(path))
    whole = measured(
        [v for each in corrupted for v in corrupted_views(each, *READING)], split, rows
    )
    merged = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(merged, whole, check_exact=True, check_dtype=False)


def robustness_table(accuracy: dict[str, list[float]], clean: float) -> pd.DataFrame:
    rows = [("none", 0, clean)]
    rows += [(name, s, a) for name, values in accuracy.items() for s, a in enumerate(values, 1)]
    table = pd.DataFrame(rows, columns=["corruption", "severity", "accuracy"])
    return table.assign(model="vit", images=100, nll=1.0, ece=0.1)


def test_the_mean_corruption_error_is_a_mean_of_means(tmp_path: Path) -> None:
    table = robustness_table({"snow": [0.9, 0.7], "fog": [0.6, 0.5], "frost": [0.4, 0.1]}, 0.95)
    error = corruption_error(table)
    assert error["corruption"].tolist() == ["snow", "fog", "frost", "mean"]
    np.testing.assert_allclose(error["error"], [0.2, 0.45, 0.75, 1.4 / 3], rtol=1e-12)
    np.testing.assert_allclose(error["clean_error"], 0.05, rtol=1e-12)
    np.testing.assert_allclose(error["relative_error"], error["error"] - 0.05, rtol=1e-12)
    assert set(error["images"]) == {100}
    find_table("corruption_error").write(error, tmp_path / "error.parquet")


def test_images_without_labels_are_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", images=np.zeros((4, 32, 32, 3), np.uint8))
    dataset = {
        "source": {"kind": "npz", "path": str(tmp_path / "all.npz")},
        "classes": 10,
        "image_size": 32,
        "resize": None,
        "interpolation": "bicubic",
        "splits": {"test": {"images": None, "seed": None}},
    }
    build_split("mine", dataset, "test", tmp_path / "test.safetensors")
    split = Split(tmp_path / "test.safetensors")
    build(split, None, "fog", [1], 0, tmp_path / "fog.safetensors")
    fog = Corrupted(tmp_path / "fog.safetensors")
    with pytest.raises(VitscopeError, match=r"data\.mine: 4 of 4 images have no label"):
        measured(corrupted_views(fog, *READING), split, fog.rows.tolist())


def test_logits_that_are_no_numbers_are_told(split: Split, corrupted: list[Corrupted]) -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.full((len(images), 10), torch.nan)

    view = next(corrupted_views(corrupted[0], *READING))
    labels = known_labels(split, corrupted[0].rows.tolist())
    with pytest.raises(VitscopeError, match="logits that are not finite"):
        predict(Broken(), view.batches, labels)
