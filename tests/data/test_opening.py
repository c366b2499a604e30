"""Sources declare themselves, and open by the entry of a study."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.archives import tar_of
from vitscope.data import sources
from vitscope.data.archives import find_official
from vitscope.data.opening import Declaration, count_images, declared, names, open_source
from vitscope.data.sources import cifar100
from vitscope.errors import VitscopeError
from vitscope.files.whole import md5_of

ROOT = Path(__file__).parents[2]


def test_sources_without_files() -> None:
    assert len(open_source({"kind": "shapes32", "seed": 0}, "test")) == 10_000
    assert len(open_source({"kind": "sample"}, "test")) == 1


def test_an_archive_that_was_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cifar100.archive"
    files = {"fine_label_names.txt": b"ant", "test.bin": bytes(3074)}
    path.write_bytes(tar_of("cifar-100-binary", files))
    # Nobody may have looked at it since it came: it may be another user's, from a cache.
    with pytest.raises(VitscopeError, match=r"is not the official archive cifar-100-binary.tar.gz"):
        open_source({"kind": "cifar100"}, "test", path)
    facts = cifar100.SOURCE["archive"]["files"]["cifar-100-binary.tar.gz"]
    monkeypatch.setitem(facts, "md5", md5_of(path))
    assert len(open_source({"kind": "cifar100"}, "test", path)) == 1
    assert len(open_source({"kind": "cifar100", "path": str(path)}, "test")) == 1


@pytest.mark.parametrize("kind", names())
def test_a_source_declares_what_its_module_holds(kind: str) -> None:
    module = importlib.import_module(f"vitscope.data.sources.{kind}")
    declaration = declared(kind)
    assert declaration == Declaration(**module.SOURCE)
    assert set(declaration.required) <= {*declaration.shared, *declaration.keys}
    assert [*inspect.signature(module.open_split).parameters] == ["source", "split", "file"]
    if declaration.archive:
        facts = find_official(declaration.archive, {"kind": kind}, kind)
        assert facts.url.startswith("https://")


def test_official_archives_have_as_many_images_as_they_declare() -> None:
    for kind in ("cifar10", "cifar100"):
        # As their authors say.
        assert declared(kind).images == {"train": 50_000, "test": 10_000}
    assert count_images({"kind": "cifar10"}, "test") == 10_000
    assert count_images({"kind": "shapes32"}, "test") is None


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
