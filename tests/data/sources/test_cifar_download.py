"""The download of the CIFAR archives, from a real server."""

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.web import Site, running_site, whole
from vitscope.data.sources import cifar
from vitscope.data.sources.cifar import ARCHIVES, Cifar, download
from vitscope.errors import VitscopeError


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with running_site() as running:
        yield running


def small_archive() -> bytes:
    data = io.BytesIO()
    members = {"fine_label_names.txt": b"apple\n", "test.bin": bytes(3074)}
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def test_the_archive_comes_checked(site: Site, tmp_path: Path, monkeypatch) -> None:
    data, target = small_archive(), tmp_path / "cifar.tar.gz"
    kind = ("cifar100", "binary")
    md5 = hashlib.md5(data).hexdigest()
    monkeypatch.setitem(ARCHIVES, kind, replace(ARCHIVES[kind], md5=md5, size=len(data)))
    site.at("/kriz/cifar-100-binary.tar.gz", whole(data))
    monkeypatch.setattr(cifar, "SITE", f"{site.root}/kriz/")
    download({"kind": "cifar100"}, target, label="cifar100", say=lambda _: None)
    source = Cifar("cifar100", target, "test")
    assert (len(source), source.classes) == (1, ["apple"])


@pytest.mark.parametrize("size", [len(small_archive()), 168_513_733])
def test_another_archive_is_refused(site: Site, tmp_path: Path, monkeypatch, size: int) -> None:
    kind = ("cifar100", "binary")
    monkeypatch.setitem(ARCHIVES, kind, replace(ARCHIVES[kind], size=size))
    url = site.at("/mirror/cifar-100-binary.tar.gz", whole(small_archive()))
    with pytest.raises(VitscopeError, match="where the publisher says"):
        download(
            {"kind": "cifar100", "url": url}, tmp_path / "cifar", label="data", say=lambda _: None
        )
    assert not list(tmp_path.iterdir())


def test_an_address_of_something_else(tmp_path: Path) -> None:
    source = {"kind": "cifar10", "url": "https://example.org/cifar-100-binary.tar.gz"}
    with pytest.raises(VitscopeError, match="names none of the official archives cifar-10-python"):
        download(source, tmp_path / "cifar", label="data")
