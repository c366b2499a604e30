import shutil
from pathlib import Path

import pytest

import vitscope
from tests.scopes.networks import network, pixels
from vitscope.scopes.scope import Scope


@pytest.fixture
def ffmpeg(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An ffmpeg on the PATH: the one of the machine, or of imageio-ffmpeg."""
    found = shutil.which("ffmpeg")
    if found is not None:
        return found
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="needs ffmpeg")
    folder = tmp_path_factory.mktemp("bin")
    (folder / "ffmpeg").symlink_to(imageio_ffmpeg.get_ffmpeg_exe())
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return str(folder / "ffmpeg")


@pytest.fixture
def without_ffmpeg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A PATH on which there is nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture(scope="session")
def scope() -> Scope:
    """A small network of 16x16 patches, without a class token."""
    return vitscope.look(network(), pixels(), mean=0.5, std=0.25, name="mine")
