"""Splits as jobs read them: normalized as by torchvision, and checked image by image."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.refusals import refusal
from tests.helpers.splits import GENERATED, built
from vitscope.data.building import NO_DIGEST, integer_tensors
from vitscope.data.split import DIGEST, Split, known_labels, rows_to_classify, select, shard_rows
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter
from vitscope.networks.building.timm_import import declare_torchvision_operators

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]


def test_normalization_is_that_of_torchvision_to_the_bit(tmp_path: Path) -> None:
    declare_torchvision_operators()
    from torchvision import transforms

    split = built(tmp_path / "test.safetensors", GENERATED, images=300, seed=0)
    normalize = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    images = split.images(slice(None)).transpose(0, 2, 3, 1)
    expected = torch.stack([normalize(Image.fromarray(image)) for image in images])
    batches = list(split.batches(range(300), 128, MEAN, STD))
    assert [len(batch) for batch in batches] == [128, 128, 44]
    assert torch.equal(torch.cat(batches), expected)


def test_a_job_reads_the_images_that_it_wants_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "test.safetensors"
    whole = built(path, GENERATED, images=300, seed=0).images(slice(None))
    harmed = bytearray(path.read_bytes())
    harmed[harmed.index(whole[200].tobytes())] ^= 1
    path.write_bytes(harmed)
    split = Split(path)
    np.testing.assert_array_equal(split.images(slice(200)), whole[:200])
    np.testing.assert_array_equal(split.images([201, 7]), whole[[201, 7]])
    for rows in (slice(None), slice(190, 210), [7, 200, 201]):
        with pytest.raises(VitscopeError, match="image 200 is not what was written; delete it"):
            split.images(rows)


def test_selection() -> None:
    assert select(10, None, 0).tolist() == list(range(10))
    assert select(10, 3, None).tolist() == [0, 1, 2]
    assert select(1000, 50, 1).tolist() != select(1000, 50, 2).tolist()
    # Of the same seed, fewer images are some of the more.
    assert set(select(1000, 50, 1)) < set(select(1000, 60, 1))


def test_another_file_is_no_artefact(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    with TensorWriter(path, {"weight": ("F64", (3,))}, {"classes": json.dumps([])}) as writer:
        writer.write("weight", 0, np.zeros(3))
    with pytest.raises(VitscopeError, match="is not an artefact of images"):
        Split(path)


def test_shards_cut_the_selection() -> None:
    shards = [shard_rows(100, shard, 10, 3, 4) for shard in range(3)]
    assert [len(shard) for shard in shards] == [4, 4, 2]
    rows = [row for shard in shards for row in shard]
    assert rows == sorted(set(rows))
    assert set(rows) <= set(range(100))
    assert rows == shard_rows(100, 0, 10, 3, 100)
    assert rows != shard_rows(100, 0, 10, 4, 100)
    assert shard_rows(100, 0, 10, None, 100) == list(range(10))


def split_of(path: Path, labels: list[int]) -> Split:
    tensors = {"images": ("U8", (len(labels), 3, 2, 2)), **integer_tensors(len(labels))}
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


def test_more_images_than_there_are_are_refused(tmp_path: Path) -> None:
    assert refusal(shard_rows, 9, 0, 10, None, 4) == (
        "analysis.images: the study measures 10 images and the split has 9: write `images: 9` "
        "in the split, or lower analysis.images."
    )
    images = split_of(tmp_path / "split", [0, 1] * 10)
    for seed in (None, 0):
        assert refusal(rows_to_classify, images, 21, seed) == (
            "analysis: the study classifies 21 images and the split 'test' of data.mine has 20: "
            "lower `images`, or set it to null for all."
        )


def test_images_without_a_label_or_outside_the_classes_are_refused(tmp_path: Path) -> None:
    images = split_of(tmp_path / "split", [0, -1, 1, -1])
    assert refusal(known_labels, images, range(4)) == (
        "data.mine: 2 of 4 images have no label, so that no accuracy can be measured: use a "
        "source with labels."
    )
    images = split_of(tmp_path / "split", [0, 1, 2])
    with pytest.raises(VitscopeError, match=r"data\.mine: 1 of 3 images .* the 2 classes"):
        known_labels(images, range(3))
