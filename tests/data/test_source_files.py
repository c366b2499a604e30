"""Where the files of a source lie."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vitscope.data.opening import archive_needed, listing_digest, local_files, local_path
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


def test_files_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names what was looked for, and what lies beside the study."""
    study, here = tmp_path / "studies" / "own.yaml", tmp_path / "here"
    source = {"kind": "folder", "path": "images/{split}"}
    for folder in (study.parent, here):
        folder.mkdir()
    monkeypatch.chdir(here)
    start = f"my.source.path: there is no file or folder {here}/images/val: "
    with pytest.raises(VitscopeError) as caught:
        local_files("my.source", source, "val", study)
    assert str(caught.value) == f"{start}put one there or correct the path."
    (study.parent / "images" / "val").mkdir(parents=True)
    with pytest.raises(VitscopeError) as caught:
        local_files("my.source", source, "val", study)
    assert str(caught.value) == (
        f"{start}{study.parent}/images/val is there, but the path starts at the working "
        f"directory: put one there or correct the path."
    )
    (here / "images" / "val").mkdir(parents=True)
    assert local_files("my.source", source, "val", study) == ["images/val"]
    assert local_files("my.source", {"kind": "sample"}, "val", study) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two classes, and a loose image."""
    for name in ("images/cat/0.png", "images/cat/1.png", "images/dog/0.png", "images/0.png"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path / "images"


def digest(folder: Path) -> str | None:
    """Digest what a folder holds now; within a process it is looked at once."""
    listing_digest.cache_clear()
    return listing_digest(folder)


def rewrite(file: Path) -> None:
    """Replace a file in place, so that no folder gets another date."""
    date = file.stat().st_mtime_ns
    file.write_text(file.read_text().swapcase())
    os.utime(file, ns=(date + 1, date + 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "dog" / "1.png").touch(),
        lambda folder: (folder / "dog" / "0.png").unlink(),
        lambda folder: (folder / "dog" / "0.png").rename(folder / "dog" / "1.png"),
        lambda folder: (folder / "dog" / "0.png").rename(folder / "cat" / "2.png"),
        lambda folder: (folder / "dog").rename(folder / "cow"),
        lambda folder: rewrite(folder / "dog" / "0.png"),
        lambda folder: rewrite(folder / "0.png"),
    ],
    ids=["added", "removed", "renamed", "moved", "class renamed", "replaced", "loose replaced"],
)
def test_a_folder_that_changes_has_another_digest(
    folder: Path, change: Callable[[Path], object]
) -> None:
    before = digest(folder)
    dates = {path: path.stat().st_mtime_ns for path in (folder, folder / "cat")}
    change(folder)
    for path, date in dates.items():
        os.utime(path, ns=(date, date))
    assert digest(folder) != before


def test_the_digest_of_a_folder_goes_by_what_is_in_it(folder: Path, tmp_path: Path) -> None:
    before = digest(folder)
    (folder / ".hidden").touch()
    (folder / "cat" / ".hidden").touch()
    (folder / "cat" / "gone.png").symlink_to(tmp_path / "nowhere")
    assert digest(folder) == before
    copy = shutil.copytree(folder, tmp_path / "copy", symlinks=True)
    assert digest(copy) == before
    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    assert digest(linked) == before


def test_what_is_no_folder_has_no_digest(folder: Path) -> None:
    assert digest(folder / "0.png") is None
    assert digest(folder / "none") is None


def test_folders_within_themselves_end(folder: Path) -> None:
    (folder / "cat" / "again").symlink_to(folder)
    assert digest(folder)


def test_a_folder_is_looked_at_once(folder: Path) -> None:
    before = digest(folder)
    (folder / "dog" / "1.png").touch()
    assert listing_digest(folder) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_refused(folder: Path) -> None:
    (folder / "cat").chmod(0)
    with pytest.raises(VitscopeError, match=r"images cannot be read .*: make it readable\.$"):
        digest(folder)
    (folder / "cat").chmod(0o700)
