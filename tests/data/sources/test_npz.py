from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.sources import open_path
from vitscope.errors import VitscopeError

IMAGES = np.random.default_rng(0).integers(0, 256, (9, 6, 5, 3), dtype=np.uint8)
WRONG = r"is not an \.npz of uint8 images and whole-numbered"


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("labels", [np.arange(9), np.arange(9, dtype=np.uint8)[:, None], None])
def test_images_are_read_one_by_one(tmp_path: Path, save: Any, labels: Any) -> None:
    path = tmp_path / "data.npz"
    save(path, images=IMAGES, **({} if labels is None else {"labels": labels}))
    source = open_path("npz", path)
    rows = np.array([0, 3, 4, 8])
    samples = list(source.samples(rows))
    assert len(source) == 9
    assert [sample.label for sample in samples] == ([-1] * 4 if labels is None else rows.tolist())
    for sample, row in zip(samples, rows, strict=True):
        np.testing.assert_array_equal(np.asarray(sample.image), IMAGES[row])


@pytest.mark.parametrize("channels", [0, slice(1)])
def test_gray_images(tmp_path: Path, channels: int | slice) -> None:
    np.savez(tmp_path / "data.npz", images=IMAGES[..., channels])
    (sample,) = open_path("npz", tmp_path / "data.npz").samples(np.array([2]))
    np.testing.assert_array_equal(np.asarray(sample.image), IMAGES[2, ..., 0])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"images": IMAGES / 255}, WRONG),
        ({"images": IMAGES[0, 0]}, WRONG),
        ({"images": np.zeros((9, 3, 6, 5), np.uint8)}, WRONG),
        ({"images": IMAGES, "labels": np.arange(8)}, WRONG),
        ({"images": IMAGES, "labels": np.arange(9.0)}, WRONG),
        ({"image": IMAGES}, r"no array 'images'; it has image\. Did you mean 'im"),
    ],
)
def test_arrays_of_something_else(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    np.savez(tmp_path / "data.npz", **arrays)
    with pytest.raises(VitscopeError, match=sentence):
        open_path("npz", tmp_path / "data.npz")


def test_files_that_are_damaged_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, images=IMAGES)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(VitscopeError, match=r"is not an \.npz"):
        list(open_path("npz", path).samples(np.arange(9)))
    path.write_bytes(b"no archive")
    for wrong in (path, tmp_path / "nowhere.npz", tmp_path):
        with pytest.raises(VitscopeError, match=r"is not an \.npz"):
            open_path("npz", wrong)
