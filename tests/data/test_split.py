"""Splits as jobs read them: normalized as by torchvision, and checked image by image."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.splits import GENERATED, built
from vitscope.data.split import Split, select
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorWriter
from vitscope.networks.building.timm_import import declare

MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]


def test_normalization_is_that_of_torchvision_to_the_bit(tmp_path: Path) -> None:
    declare()
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
