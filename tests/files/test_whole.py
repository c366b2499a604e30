import hashlib
import os
from pathlib import Path

import pytest

from tests.helpers.refusals import refusal
from vitscope.files.whole import atomic_path, copy_file, sha256_of, write_text


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "file.txt"
    with atomic_path(target) as partial:
        partial.write_text("half", encoding="utf-8")
        assert not target.exists()
        assert partial.parent == target.parent
    assert target.read_text(encoding="utf-8") == "half"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("error", [RuntimeError("x"), KeyboardInterrupt(), SystemExit(1)])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old", encoding="utf-8")

    def fail() -> None:
        with atomic_path(target) as partial:
            partial.write_text("new", encoding="utf-8")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_what_a_kill_left_is_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    with atomic_path(target) as partial:
        pass_on = partial
        partial.touch()
    pass_on.write_text("of a killed run", encoding="utf-8")
    write_text(target, "good")
    assert target.read_text(encoding="utf-8") == "good"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_that_cannot_be_made_and_a_target_that_is_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    reasons = {"file/below/table": "Not a directory", "folder": "Is a directory"}
    for target, reason in ((tmp_path / name, reason) for name, reason in reasons.items()):
        assert refusal(write_text, target, "text") == (
            f"Cannot write {target} ({reason}): free some space, or make its folder writable."
        )
    assert {path.name for path in tmp_path.iterdir()} == {"file", "folder"}


def test_a_file_that_cannot_be_read_is_not_reported_as_one_that_cannot_be_written(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError):
        copy_file(tmp_path / "source", tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_copy_and_digest(tmp_path: Path) -> None:
    content = os.urandom(3_000_001)
    (tmp_path / "source").write_bytes(content)
    copy_file(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == content
    assert sha256_of(tmp_path / "target") == hashlib.sha256(content).hexdigest()
