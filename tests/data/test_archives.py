import hashlib
from pathlib import Path

import pytest

from tests.helpers.archives import tar_of
from tests.helpers.sources import open_path
from tests.helpers.web import Site, whole
from vitscope.data.archives import download
from vitscope.data.sources import cifar10, cifar100
from vitscope.errors import VitscopeError

ARCHIVE = tar_of("cifar-100-binary", {"fine_label_names.txt": b"apple\n", "test.bin": bytes(3074)})


def test_the_archive_comes_checked(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "cifar.tar.gz"
    url = site.at("/kriz/cifar-100-binary.tar.gz", whole(ARCHIVE))
    facts = {"md5": hashlib.md5(ARCHIVE).hexdigest(), "size": len(ARCHIVE)}
    archive = {"url": url, "files": {"cifar-100-binary.tar.gz": facts}}
    download(archive, {"kind": "cifar100"}, target, label="cifar100", say=print)
    source = open_path("cifar100", target, "test")
    assert (len(source), source.classes) == (1, ["apple"])


@pytest.mark.parametrize("size", [len(ARCHIVE), 168_513_733])
def test_another_archive_is_refused(site: Site, tmp_path: Path, size: int) -> None:
    official = cifar100.SOURCE["archive"]
    facts = official["files"]["cifar-100-binary.tar.gz"] | {"size": size}
    archive = official | {"files": {"cifar-100-binary.tar.gz": facts}}
    url = site.at("/mirror/cifar-100-binary.tar.gz", whole(ARCHIVE))
    source = {"kind": "cifar100", "url": url}
    with pytest.raises(VitscopeError, match="where the publisher says"):
        download(archive, source, tmp_path / "cifar", label="data", say=print)
    assert not list(tmp_path.iterdir())


def test_an_address_of_something_else(tmp_path: Path) -> None:
    source = {"kind": "cifar10", "url": "https://example.org/cifar-100-binary.tar.gz"}
    archive = cifar10.SOURCE["archive"]
    with pytest.raises(VitscopeError, match="names none of the official archives cifar-10-python"):
        download(archive, source, tmp_path / "cifar", label="data", say=print)
