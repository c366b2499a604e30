import json
import resource
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.pictures import as_png
from tests.helpers.sources import open_path
from vitscope.data.source import Source
from vitscope.errors import VitscopeError

IMAGES = np.random.default_rng(0).integers(0, 256, (200, 4, 5, 3), dtype=np.uint8)


def table(rows: slice, image: str = "img", label: str = "fine_label") -> pa.Table:
    images = [{"bytes": as_png(pixels), "path": None} for pixels in IMAGES[rows]]
    return pa.table({label: pa.array(range(200)[rows]), "more": [0] * len(images), image: images})


def check(source: Source, rows: list[int]) -> None:
    samples = list(source.samples(np.array(rows)))
    assert [sample.label for sample in samples] == rows
    for sample, row in zip(samples, rows, strict=True):
        np.testing.assert_array_equal(np.asarray(sample.image), IMAGES[row])


@pytest.mark.parametrize("group", [7, 64, 65, 1000])
def test_rows_come_from_every_group(tmp_path: Path, group: int) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(table(slice(None)), path, row_group_size=group)
    source = open_path("parquet", path)
    assert len(source) == 200
    check(source, [0, 6, 7, 63, 64, 65, 130, 199])
    check(source, list(range(200)))
    check(source, [])


def test_a_folder_of_files(tmp_path: Path) -> None:
    for first in (0, 80, 110):
        end = {0: 80, 80: 110, 110: 200}[first]
        pq.write_table(table(slice(first, end)), tmp_path / f"test-{first:05}.parquet")
    (tmp_path / "README.md").write_text("no table")
    source = open_path("parquet", tmp_path)
    assert len(source) == 200
    check(source, [3, 79, 80, 109, 110, 199])
    pq.write_table(table(slice(0, 2), "image"), tmp_path / "test.parquet")
    with pytest.raises(VitscopeError, match=r"test\.parquet has other columns than test-00000"):
        open_path("parquet", tmp_path)


def test_names_of_classes(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    names = ["ant", "bee"]
    features = {"label": {"names": names, "_type": "ClassLabel"}}
    facts = {"huggingface": json.dumps({"info": {"features": features}})}
    made = table(slice(0, 2), "image", "label")
    pq.write_table(made.replace_schema_metadata(facts), path)
    assert open_path("parquet", path).classes == names
    pq.write_table(table(slice(0, 2)), path)
    assert open_path("parquet", path).classes == []


def test_a_note_of_classes_that_is_nested_too_deeply_names_none(tmp_path: Path) -> None:
    table = pa.table({"img": pa.array([b"x"]), "label": pa.array([0])})
    path = tmp_path / "a.parquet"
    pq.write_table(table.replace_schema_metadata({"huggingface": "[" * 100_000}), path)
    assert open_path("parquet", path).classes == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_the_footer_is_read_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = []

    def open_and_note(path: Path) -> pq.ParquetFile:
        limits.append(resource.getrlimit(resource.RLIMIT_DATA)[0])
        return opened(path)

    pq.write_table(pa.table({"img": pa.array([b"x"]), "label": pa.array([0])}), tmp_path / "a")
    opened, before = pq.ParquetFile, resource.getrlimit(resource.RLIMIT_DATA)[0]
    monkeypatch.setattr(pq, "ParquetFile", open_and_note)
    open_path("parquet", tmp_path / "a")
    assert limits
    assert before not in limits
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == before


def test_a_folder_holds_one_footer_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[pq.ParquetFile]] = []

    def open_and_count(path: Path) -> pq.ParquetFile:
        most.append(sum(each() is not None for each in held))
        file = opened(path)
        held.append(weakref.ref(file))
        return file

    for name in "abcd":
        rows = {"img": pa.array([b"x"]), "label": pa.array([0])}
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    opened, most = pq.ParquetFile, list[int]()
    monkeypatch.setattr(pq, "ParquetFile", open_and_count)
    assert len(open_path("parquet", tmp_path)) == 4
    assert max(most) == 0
    assert len(held) > 3


def test_columns_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    pq.write_table(table(slice(None), "picture", "kind"), path)
    check(open_path("parquet", path, image="picture", label="kind"), [5])
    with pytest.raises(VitscopeError, match="no column img or image of images; it has kind, more"):
        open_path("parquet", path, label="kind")
    with pytest.raises(VitscopeError, match=r"no column pictures of images.*mean 'picture'"):
        open_path("parquet", path, image="pictures", label="kind")


def test_images_as_plain_bytes_and_rows_without_label(tmp_path: Path) -> None:
    made = pa.table({"image": [as_png(IMAGES[0])], "label": pa.array([None], pa.int64())})
    pq.write_table(made, tmp_path / "test.parquet")
    (sample,) = open_path("parquet", tmp_path / "test.parquet").samples(np.array([0]))
    assert sample.label == -1


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ("a path", r"holds no encoded images in image\.bytes"),
        ({"bytes": None, "path": "a.png"}, r"holds no encoded images in image\.bytes"),
        (b"no image", r"test\.parquet: an image .* is not a readable image"),
    ],
)
def test_columns_of_something_else(tmp_path: Path, image: Any, sentence: str) -> None:
    pq.write_table(pa.table({"image": [image], "label": [0]}), tmp_path / "test.parquet")
    with pytest.raises(VitscopeError, match=sentence):
        list(open_path("parquet", tmp_path / "test.parquet").samples(np.array([0])))


def test_files_that_are_damaged_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    path.write_bytes(b"PAR1 and no more")
    for wrong in (path, tmp_path / "nowhere.parquet"):
        with pytest.raises(VitscopeError, match="is not a readable parquet file: get it again"):
            open_path("parquet", wrong)
    path.unlink()
    with pytest.raises(VitscopeError, match="holds no parquet files"):
        open_path("parquet", tmp_path)
    pq.write_table(table(slice(None)), path, compression="none")
    data = bytearray(path.read_bytes())
    data[8:200] = bytes(192)
    path.write_bytes(data)
    with pytest.raises(VitscopeError, match="is a damaged parquet file"):
        list(open_path("parquet", path).samples(np.arange(200)))
