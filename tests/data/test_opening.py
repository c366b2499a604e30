import hashlib
import importlib
import inspect
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.archives import tar_of
from tests.helpers.refusals import refusal
from tests.helpers.sources import open_path
from tests.helpers.web import Site, whole
from vitscope.data import sources
from vitscope.data.archives import download_official_archive, find_official_archive
from vitscope.data.opening import (
    Declaration,
    archive_needed,
    count_images,
    declared,
    listing_digest,
    local_files,
    local_path,
    open_source,
    source_kinds,
)
from vitscope.errors import VitscopeError
from vitscope.files.whole import md5_of


def test_sources_without_files_and_of_an_unknown_kind() -> None:
    assert len(open_source({"kind": "shapes32", "seed": 0}, "test")) == 10_000
    assert len(open_source({"kind": "sample"}, "test")) == 1
    with pytest.raises(VitscopeError, match=r"There is no source 'cifar11'; .* mean 'cifar10'"):
        open_source({"kind": "cifar11"}, "test")


@pytest.mark.parametrize(
    ("kind", "split", "sentence"),
    [
        ("cifar10", "val", r"cifar10 has no split 'val'.*train, test"),
        ("cue_conflict", "test", "cue_conflict has no split 'test'"),
        ("scenes32", "conflict", "scenes32 has no split 'conflict': name the splits"),
        ("shapes32", "tests", r"shapes32 has no split 'tests'.*Did you mean 'test'"),
    ],
)
def test_a_split_that_a_source_lacks(kind: str, split: str, sentence: str) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        open_path(kind, Path("any"), split)


ARCHIVE = tar_of("cifar-100-binary", {"fine_label_names.txt": b"apple\n", "test.bin": bytes(3074)})


def test_the_archive_comes_checked(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "cifar.tar.gz"
    url = site.at("/kriz/cifar-100-binary.tar.gz", whole(ARCHIVE))
    facts = {"md5": hashlib.md5(ARCHIVE).hexdigest(), "size": len(ARCHIVE)}
    archive = {"url": url, "files": {"cifar-100-binary.tar.gz": facts}}
    download_official_archive(archive, {"kind": "cifar100"}, target, label="cifar100", say=print)
    source = open_path("cifar100", target, "test")
    assert (len(source), source.classes) == (1, ["apple"])
    # An address of something else.
    source, archive = {"kind": "cifar10", "url": url}, declared("cifar10").archive
    with pytest.raises(VitscopeError, match="names none of the official archives cifar-10-python"):
        download_official_archive(archive, source, target, label="data", say=print)


@pytest.mark.parametrize("size", [len(ARCHIVE), 168_513_733])
def test_another_archive_is_refused(site: Site, tmp_path: Path, size: int) -> None:
    official = declared("cifar100").archive
    facts = official["files"]["cifar-100-binary.tar.gz"] | {"size": size}
    archive = official | {"files": {"cifar-100-binary.tar.gz": facts}}
    url = site.at("/mirror/cifar-100-binary.tar.gz", whole(ARCHIVE))
    source = {"kind": "cifar100", "url": url}
    with pytest.raises(VitscopeError, match="where the publisher says"):
        download_official_archive(archive, source, tmp_path / "cifar", label="data", say=print)
    assert not list(tmp_path.iterdir())


def test_an_archive_that_was_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cifar100.archive"
    path.write_bytes(ARCHIVE)
    # Nobody may have looked at it since it came: it may be another user's, from a cache.
    with pytest.raises(VitscopeError, match=r"is not the official archive cifar-100-binary.tar.gz"):
        open_source({"kind": "cifar100"}, "test", path)
    facts = declared("cifar100").archive["files"]["cifar-100-binary.tar.gz"]
    monkeypatch.setitem(facts, "md5", md5_of(path))
    assert len(open_source({"kind": "cifar100"}, "test", path)) == 1
    assert len(open_source({"kind": "cifar100", "path": str(path)}, "test")) == 1


@pytest.mark.parametrize("kind", source_kinds())
def test_a_source_declares_what_its_module_holds(kind: str) -> None:
    module = importlib.import_module(f"vitscope.data.sources.{kind}")
    declaration = declared(kind)
    assert declaration == Declaration(**module.SOURCE)
    assert set(declaration.required) <= {*declaration.shared, *declaration.keys}
    assert [*inspect.signature(module.open_split).parameters] == ["source", "split", "file"]
    if declaration.archive:
        url, _, _ = find_official_archive(declaration.archive, {"kind": kind}, kind)
        assert url.startswith("https://")


def test_official_archives() -> None:
    """They have as many images as they declare, and are downloaded unless they are here."""
    for kind in ("cifar10", "cifar100"):
        # As their authors say.
        assert declared(kind).images == {"train": 50_000, "test": 10_000}
    assert count_images({"kind": "cifar10"}, "test") == 10_000
    assert count_images({"kind": "shapes32"}, "test") is None
    assert archive_needed({"kind": "cifar100"})
    assert not archive_needed({"kind": "cifar100", "path": "cifar-100-binary.tar.gz"})
    assert not archive_needed({"kind": "shapes32"})


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
    before = source_kinds()
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path)])
    assert source_kinds() == sorted([*before, "broken", "mine", "silent"])
    assert declared("broken").meaning == "nothing"
    with pytest.raises(VitscopeError, match=r"'silent' has no literal SOURCE in .*; add one"):
        declared("silent")
    entry = {"kind": "mine", "many": 3}
    assert open_source(entry, "test") == (entry, "test", None)


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
    said = refusal(local_files, "my.source", source, "val", study)
    assert said == f"{start}put one there or correct the path."
    (study.parent / "images" / "val").mkdir(parents=True)
    assert refusal(local_files, "my.source", source, "val", study) == (
        f"{start}{study.parent}/images/val is there, but the path starts at the working "
        f"directory: put one there or correct the path."
    )
    (here / "images" / "val").mkdir(parents=True)
    assert local_files("my.source", source, "val", study) == ["images/val"]
    assert local_files("my.source", {"kind": "sample"}, "val", study) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
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
    # A folder is looked at once.
    (folder / "dog" / "1.png").touch()
    assert listing_digest(linked) == before
    # Folders within themselves end, and what is no folder has no digest.
    (folder / "cat" / "again").symlink_to(folder)
    assert digest(folder)
    assert digest(folder / "0.png") is digest(folder / "none") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_refused(folder: Path) -> None:
    (folder / "cat").chmod(0)
    with pytest.raises(VitscopeError, match=r"images cannot be read .*: make it readable\.$"):
        digest(folder)
    (folder / "cat").chmod(0o700)
