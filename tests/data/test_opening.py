"""Every kind of source opens by the entry of a study."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from vitscope.data.opening import open_source
from vitscope.data.sources import cifar100
from vitscope.errors import VitscopeError
from vitscope.files.whole import md5_of


def test_sources_without_files() -> None:
    assert len(open_source({"kind": "shapes32", "seed": 0}, "test")) == 10_000
    assert len(open_source({"kind": "sample"}, "test")) == 1


def test_sources_with_files(tmp_path: Path) -> None:
    png = io.BytesIO()
    Image.new("RGB", (8, 8)).save(png, "PNG")
    pq.write_table(pa.table({"image": [png.getvalue()], "label": [3]}), tmp_path / "test.parquet")
    np.savez(tmp_path / "test.npz", images=np.zeros((1, 8, 8, 3), np.uint8), labels=[3])
    (tmp_path / "pictures" / "test").mkdir(parents=True)
    (tmp_path / "pictures" / "test" / "a.png").write_bytes(png.getvalue())
    entries = [
        {"kind": "parquet", "path": f"{tmp_path}/{{split}}.parquet"},
        {"kind": "npz", "path": f"{tmp_path}/{{split}}.npz"},
        {"kind": "folder", "path": f"{tmp_path}/pictures/{{split}}"},
    ]
    labels = []
    for entry in entries:
        (sample,) = open_source(entry, "test").samples(np.array([0]))
        labels.append(sample.label)
    assert labels == [3, 3, -1]


def test_an_archive_that_was_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cifar100.archive"
    with tarfile.open(path, "w:gz") as tar:
        for name, data in {"fine_label_names.txt": b"ant", "test.bin": bytes(3074)}.items():
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    # Nobody may have looked at it since it came: it may be another user's, from a cache.
    with pytest.raises(VitscopeError, match=r"is not the official archive cifar-100-binary.tar.gz"):
        open_source({"kind": "cifar100"}, "test", path)
    facts = cifar100.SOURCE["archive"]["files"]["cifar-100-binary.tar.gz"]
    monkeypatch.setitem(facts, "md5", md5_of(path))
    assert len(open_source({"kind": "cifar100"}, "test", path)) == 1
    assert len(open_source({"kind": "cifar100", "path": str(path)}, "test")) == 1


def test_a_source_whose_files_are_not_named() -> None:
    with pytest.raises(
        VitscopeError, match="kind cifar10 needs the path of its files: give `path`"
    ):
        open_source({"kind": "cifar10"}, "test")
