import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Exported, write_arrays
from vitscope.jobs.latents import FORMATS

FACTS = {"model": "vit", "data_sha256": "0" * 64}
MAPS = np.random.default_rng(0).standard_normal((10, 3, 4, 4)).astype(np.float32)
SMALL = {"labels": np.arange(10), "name": np.array(["stem", "blocks.0"]), "depth": np.arange(2.0)}


def read_npz(path: Path) -> tuple[Mapping[str, Any], dict[str, str]]:
    file = np.load(path)
    return file, json.loads(str(file["facts"]))


def read_hdf5(path: Path) -> tuple[Mapping[str, Any], dict[str, str]]:
    file = h5py.File(path)
    return {**file, "maps/stem": file["maps/stem"], "name": file["name"].asstr()}, dict(file.attrs)


def read_zarr(path: Path) -> tuple[Mapping[str, Any], dict[str, str]]:
    group = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    return group, dict(group.attrs)


READ: dict[str, Callable[[Path], tuple[Any, dict[str, str]]]] = {
    "npz": read_npz,
    "h5": read_hdf5,
    "zarr.zip": read_zarr,
}


def in_blocks(maps: np.ndarray, block: int) -> Exported:
    def rows() -> Iterator[np.ndarray]:
        yield from (maps[first : first + block] for first in range(0, len(maps), block))

    return Exported(maps.shape, maps.dtype, block, rows)


def write_all(path: Path, suffix: str) -> None:
    small = {name: Exported.of(array) for name, array in SMALL.items()}
    write_arrays(path, suffix, {"maps/stem": in_blocks(MAPS, 4), **small}, FACTS)


@pytest.mark.parametrize("suffix", FORMATS.values())
@pytest.mark.filterwarnings("error")
def test_others_read_what_is_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"latents.{suffix}"
    write_all(path, suffix)
    found, facts = READ[suffix](path)
    assert facts == FACTS
    np.testing.assert_array_equal(found["maps/stem"][:], MAPS)
    for name, expected in SMALL.items():
        np.testing.assert_array_equal(found[name][:], expected)


def test_the_same_arrays_are_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one.npz", "other.npz")]
    for path in paths:
        write_all(path, "npz")
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("suffix", FORMATS.values())
def test_one_block_is_in_memory(suffix: str, tmp_path: Path) -> None:
    def rows() -> Iterator[np.ndarray]:
        for number in range(64):
            yield np.full((1, 1 << 18), number, np.float32)

    whole = Exported((64, 1 << 18), np.dtype(np.float32), 1, rows)
    write_all(tmp_path / f"first.{suffix}", suffix)
    tracemalloc.start()
    write_arrays(tmp_path / f"large.{suffix}", suffix, {"maps": whole}, {})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A block has one megabyte, all of them 64.
    assert peak < 8e6


def test_a_format_whose_package_is_missing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(VitscopeError, match="pip install h5py, or choose npz"):
        write_all(tmp_path / "latents.h5", "h5")
    assert not [*tmp_path.iterdir()]
