"""Where the files of a source lie."""

from pathlib import Path

import pytest

from vitscope.data.places import archive_needed, local_files, local_path
from vitscope.errors import VitscopeError


def test_archives_are_downloaded_unless_they_are_here() -> None:
    assert archive_needed({"kind": "cifar100"})
    assert not archive_needed({"kind": "cifar100", "path": "cifar-100-binary.tar.gz"})
    assert not archive_needed({"kind": "shapes32"})


def test_a_path_may_name_the_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    source = {"kind": "parquet", "path": "~/cifar100/{split}.parquet"}
    assert local_path(source, "test") == Path("/home/someone/cifar100/test.parquet")
    assert local_path({"kind": "shapes32"}, "test") is None


def test_files_must_be_there(tmp_path: Path) -> None:
    source = {"kind": "folder", "path": f"{tmp_path}/{{split}}"}
    with pytest.raises(
        VitscopeError, match=r"^my\.source\.path: there is no file or folder .*/val:"
    ):
        local_files("my.source", source, "val")
    (tmp_path / "val").mkdir()
    assert local_files("my.source", source, "val") == [str(tmp_path / "val")]
    assert local_files("my.source", {"kind": "sample"}, "val") == []
