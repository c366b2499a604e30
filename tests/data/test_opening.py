"""Sources declare themselves, and open by the entry of a study."""

import importlib
import inspect
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from vitscope.data import sources
from vitscope.data.archives import official
from vitscope.data.opening import Declaration, declared, names, open_source
from vitscope.data.sources import cifar100
from vitscope.errors import VitscopeError
from vitscope.files.whole import md5_of

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("kind", names())
def test_a_source_declares_what_its_module_holds(kind: str) -> None:
    module = importlib.import_module(f"vitscope.data.sources.{kind}")
    declaration = declared(kind)
    assert declaration == Declaration(**module.SOURCE)
    assert set(declaration.required) <= {*declaration.shared, *declaration.keys}
    assert [*inspect.signature(module.open_split).parameters] == ["source", "split", "file"]
    if declaration.archive:
        facts = official(declaration.archive, {"kind": kind}, kind)
        assert facts.url.startswith("https://")


NEW = """
SOURCE: dict = {"meaning": "nothing", "keys": {"many": {"type": "integer", "default": 3}}}


def open_split(source, split, file):
    return source, split, file
"""


def test_a_new_source_is_a_new_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(NEW)
    (tmp_path / "_shared.py").touch()
    # To know of a source, its module is read and not run.
    (tmp_path / "broken.py").write_text(f"{NEW}\nraise ValueError")
    (tmp_path / "silent.py").touch()
    before = names()
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    assert names() == sorted([*before, "broken", "mine", "silent"])
    assert declared("broken").meaning == "nothing"
    with pytest.raises(
        VitscopeError, match=r"source 'silent' has no literal SOURCE in .*; add one"
    ):
        declared("silent")
    entry = {"kind": "mine", "many": 3}
    assert open_source(entry, "test") == (entry, "test", None)


def test_an_unknown_kind() -> None:
    with pytest.raises(VitscopeError, match=r"There is no source 'cifar11'; .* mean 'cifar10'"):
        open_source({"kind": "cifar11"}, "test")


def test_to_know_the_sources_nothing_that_reads_images_is_imported() -> None:
    code = (
        "import sys; from vitscope.data import opening; [*map(opening.declared, opening.names())]"
    )
    code += "; sys.exit(bool({'PIL', 'numpy', 'pyarrow'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
