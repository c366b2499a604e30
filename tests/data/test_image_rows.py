"""Which images of a split a network is shown: shards, some of all, and labels that are known."""

from pathlib import Path

import numpy as np
import pytest

from vitscope.data.building import NO_DIGEST
from vitscope.data.split import DIGEST, Split, known_labels, rows_to_classify, shard_rows
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter


def test_shards_cut_the_selection() -> None:
    shards = [shard_rows(100, shard, 10, 3, 4) for shard in range(3)]
    assert [len(shard) for shard in shards] == [4, 4, 2]
    rows = [row for shard in shards for row in shard]
    assert rows == sorted(set(rows))
    assert set(rows) <= set(range(100))
    assert rows == shard_rows(100, 0, 10, 3, 100)
    assert rows != shard_rows(100, 0, 10, 4, 100)
    assert shard_rows(100, 0, 10, None, 100) == list(range(10))


def test_more_images_than_there_are() -> None:
    with pytest.raises(VitscopeError) as caught:
        shard_rows(9, 0, 10, None, 4)
    assert str(caught.value) == (
        "analysis.images: the study measures 10 images and the split has 9: lower analysis.images, "
        "or say in the split how many `images` it has."
    )


def split_of(path: Path, labels: list[int]) -> Split:
    tensors = {
        "images": ("U8", (len(labels), 3, 2, 2)),
        "labels": ("I64", (len(labels),)),
        "index": ("I64", (len(labels),)),
        "sums": ("I64", (len(labels),)),
    }
    metadata = {"dataset": "mine", "split": "test", "classes": '["cat", "dog"]', DIGEST: NO_DIGEST}
    with TensorWriter(path, tensors, metadata) as writer:
        writer.write("labels", 0, np.array(labels))
    return Split(path)


def test_all_images_are_classified_or_some(tmp_path: Path) -> None:
    images = split_of(tmp_path / "split", [0, 1] * 10)
    assert rows_to_classify(images, None, 0) == list(range(20))
    assert rows_to_classify(images, 5, None) == [0, 1, 2, 3, 4]
    some = rows_to_classify(images, 5, 0)
    assert some == sorted(set(some)) != [0, 1, 2, 3, 4]
    assert rows_to_classify(images, 20, 0) == list(range(20))


@pytest.mark.parametrize("seed", [None, 0])
def test_more_images_than_there_are_are_refused(tmp_path: Path, seed: int | None) -> None:
    images = split_of(tmp_path / "split", [0, 1] * 10)
    with pytest.raises(VitscopeError) as caught:
        rows_to_classify(images, 21, seed)
    assert str(caught.value) == (
        "analysis: the study classifies 21 images and the split 'test' of data.mine has 20: "
        "lower `images`, or set it to null for all."
    )


def test_images_without_a_label_are_refused(tmp_path: Path) -> None:
    images = split_of(tmp_path / "split", [0, -1, 1, -1])
    with pytest.raises(VitscopeError) as caught:
        known_labels(images, range(4))
    assert str(caught.value) == (
        "data.mine: 2 of 4 images have no label, so that no accuracy can be measured: use a "
        "source with labels."
    )


def test_labels_outside_the_classes_are_refused(tmp_path: Path) -> None:
    images = split_of(tmp_path / "split", [0, 1, 2])
    with pytest.raises(VitscopeError, match=r"data\.mine: 1 of 3 images .* the 2 classes"):
        known_labels(images, range(3))
