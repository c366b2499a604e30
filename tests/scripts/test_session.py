"""One run at a time in a folder: what holds it, and what is in its place."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from scripts._session import claim_folder
from vitscope.errors import VitscopeError


def test_a_folder_is_held_by_a_file_that_others_cannot_read(tmp_path: Path) -> None:
    lock = claim_folder(tmp_path)
    assert (tmp_path / "run.lock").read_text().startswith(f"process {os.getpid()} on ")
    assert (tmp_path / "run.lock").stat().st_mode & 0o777 == 0o600
    with pytest.raises(VitscopeError, match=rf"another run .* \(process {os.getpid()} on "):
        claim_folder(tmp_path)
    os.close(lock)


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "run.lock").symlink_to(tmp_path / "outside")
    with pytest.raises(VitscopeError, match=r"run.lock cannot be written and locked \(Too many"):
        claim_folder(tmp_path)
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSPC])
def test_what_a_file_system_refuses_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    place = (fcntl, "flock") if code == errno.ENOLCK else (os, "pwrite")
    monkeypatch.setattr(*place, refuse)
    with pytest.raises(VitscopeError, match=rf"\({os.strerror(code)}\): make room, .* flock\.$"):
        claim_folder(tmp_path)
