import hashlib
from pathlib import Path

import pytest

from tests.helpers.hub import Hub
from tests.helpers.refusals import refusal
from tests.helpers.web import Site, whole
from vitscope.errors import VitscopeError
from vitscope.networks.checkpoints.weight_sources import (
    address,
    confirm,
    describe_source,
    download_checkpoint,
    local_file,
)
from vitscope.web.lockfile import Entry, find_lock_entry

DATA, OTHER = b"\0weights" * 1000, b"\0others!" * 1000
SHA256 = hashlib.sha256(DATA).hexdigest()
STUDY, URL = Path("my.yaml"), "https://example.org/vit.pth"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "config" / "paper.lock.yaml"


def fetch(checkpoint: dict[str, str], folder: Path, said: list[str]) -> Path:
    target = folder / "vit.checkpoint"
    lock = folder / "config" / "paper.lock.yaml"
    download_checkpoint(checkpoint, target, lock, label="ViT", say=said.append, attempts=1)
    return target


def test_files_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some").mkdir()
    file = tmp_path / "some" / "a.pth"
    file.touch()
    assert local_file("here", {"bundled": "some/a.pth"}, tmp_path, STUDY) == file
    assert local_file("here", {"path": "some/a.pth"}, tmp_path, STUDY) == Path("some/a.pth")
    assert local_file("here", {"path": "~/some/a.pth"}, tmp_path, STUDY) == file
    assert local_file("here", {"url": "https://host/a"}, tmp_path, STUDY) is None
    assert local_file("here", {"timm": "resnet50.a1_in1k"}, tmp_path, STUDY) is None


def test_a_file_of_this_machine_must_exist(tmp_path, monkeypatch):
    where = "my.yaml: models.vit.checkpoint"
    with pytest.raises(VitscopeError, match=r"^my.yaml: models.vit.checkpoint.path: there is no"):
        local_file(where, {"path": str(tmp_path / "a.pth")}, tmp_path, STUDY)
    with pytest.raises(VitscopeError, match=rf"bundled: there is no file {tmp_path}/a.pth"):
        local_file(where, {"bundled": "a.pth"}, tmp_path, STUDY)
    # One beside the study is told.
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "a.pth").touch()
    monkeypatch.chdir(tmp_path)
    study = Path("studies/my.yaml")
    assert refusal(local_file, "here", {"path": "a.pth"}, tmp_path, study) == (
        f"here.path: there is no file {tmp_path}/a.pth: {tmp_path}/studies/a.pth is there, but the "
        f"path starts at the working directory: put one there or correct the path."
    )


def test_descriptions_name_no_folder_of_this_machine():
    assert describe_source({"bundled": "resources/a.safetensors"}) == "resources/a.safetensors"
    assert describe_source({"path": "/home/someone/a.pth"}) == "a.pth"
    assert describe_source({"url": "https://host/a.pth"}) == "https://host/a.pth"
    assert describe_source({"timm": "resnet50.a1_in1k"}) == "timm: resnet50.a1_in1k"
    assert describe_source({"hf": "owner/name@v2"}) == "hf: owner/name@v2"


@pytest.mark.parametrize(
    ("checkpoint", "found"),
    [({"sha256": "a"}, "none"), ({"url": "a", "path": "b"}, "path and url")],
)
def test_a_checkpoint_has_exactly_one_place(checkpoint, found):
    with pytest.raises(VitscopeError, match=rf"exactly one of .*, and this one names {found}\."):
        describe_source(checkpoint)


@pytest.mark.parametrize("tag", ["resnet50.a1_in1k", "vit_tiny_patch16_224.augreg_in21k_ft_in1k"])
def test_tags_are_found_on_the_hub(monkeypatch, tag):
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert address({"timm": tag}).startswith(f"https://huggingface.co/timm/{tag}/")
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example/")
    assert address({"timm": tag}) == (
        f"https://mirror.example/timm/{tag}/resolve/main/model.safetensors"
    )


@pytest.mark.parametrize("tag", ["resnet50.a1_in2k", "resnet51.a1_in1k", ""])
def test_an_unknown_tag_is_refused(tag):
    with pytest.raises(VitscopeError, match=rf"timm has no pretrained weights '{tag}': give") as e:
        address({"timm": tag})
    assert ("Did you mean 'resnet5" in str(e.value)) == bool(tag)


@pytest.mark.parametrize(
    ("checkpoint", "repository", "revision"),
    [
        ({"timm": "resnet50.a1_in1k"}, "timm/resnet50.a1_in1k", "main"),
        ({"hf": "owner/name"}, "owner/name", "main"),
        ({"hf": "owner/name@v2"}, "owner/name", "v2"),
    ],
)
def test_weights_on_the_hub_are_fetched_once_and_recorded(
    checkpoint: dict[str, str], repository: str, revision: str, hub: Hub, tmp_path: Path, lock: Path
) -> None:
    url = hub.put(repository, "model.safetensors", DATA, revision)
    target = fetch(checkpoint, tmp_path, [])
    assert target.read_bytes() == DATA
    assert not target.is_symlink()
    assert find_lock_entry(lock, url) == Entry(SHA256, len(DATA))
    assert address(checkpoint) == url
    asked = len(hub.server.requests)
    target.unlink()
    assert fetch(checkpoint, tmp_path, []).read_bytes() == DATA
    assert len(hub.server.requests) == asked > 0


def test_weights_on_the_hub_must_be_there_and_those_of_the_study(hub: Hub, tmp_path: Path) -> None:
    hub.put("owner/name", "model.safetensors", OTHER)
    with pytest.raises(VitscopeError, match=f"where the study says {SHA256}: it is another file"):
        fetch({"hf": "owner/name", "sha256": SHA256}, tmp_path, [])
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
    said = r"^ViT: model\.safetensors of 'owner/none' cannot be had from the hub \(\w+: .*HF_TOKEN"
    with pytest.raises(VitscopeError, match=said):
        fetch({"hf": "owner/none"}, tmp_path, [])


def test_the_users_token_is_sent(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.put("owner/name", "model.safetensors", DATA)
    fetch({"hf": "owner/name"}, tmp_path, [])
    sent = {headers["Authorization"] for _, headers in hub.server.requests}
    assert sent == {"Bearer hf_secret"}


def test_a_first_download_is_recorded_and_said(site: Site, tmp_path, lock):
    said: list[str] = []
    url = site.at("/w", whole(DATA), whole(DATA))
    # A digest of the study needs no lock file.
    fetch({"url": url, "sha256": SHA256}, tmp_path, [])
    assert not lock.parent.exists()
    assert fetch({"url": url}, tmp_path, said).read_bytes() == DATA
    assert find_lock_entry(lock, url) == Entry(SHA256, len(DATA))
    assert said[-1] == f"ViT: wrote its SHA-256 {SHA256} to {lock}; later downloads must match"


def test_a_later_download_must_match(site: Site, tmp_path, lock):
    url = site.at("/w", whole(DATA), whole(DATA), whole(OTHER))
    said: list[str] = []
    fetch({"url": url}, tmp_path, said)
    before, said[:] = lock.read_bytes(), []
    fetch({"url": url}, tmp_path, said).unlink()
    assert not any("wrote its SHA-256" in line for line in said)
    with pytest.raises(VitscopeError, match=f"where {lock} says {SHA256}: it is another file"):
        fetch({"url": url}, tmp_path, said)
    assert lock.read_bytes() == before
    assert list(tmp_path.iterdir()) == [lock.parent]


def test_a_digest_that_cannot_be_recorded_leaves_no_download(site: Site, tmp_path):
    def put_a_file_where_the_folder_should_be(handler):
        (tmp_path / "config").write_text("in the way")
        whole(DATA)(handler)

    url = site.at("/w", put_a_file_where_the_folder_should_be)
    with pytest.raises(VitscopeError, match=rf"the sha256 of .*/w, which is {SHA256}\."):
        fetch({"url": url}, tmp_path, [])
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


@pytest.fixture
def fetched(tmp_path: Path) -> Path:
    """A download that may have come from anywhere."""
    path = tmp_path / "vit.checkpoint"
    path.write_bytes(DATA)
    return path


def test_what_the_study_says_is_left_to_the_reader(lock: Path, fetched: Path) -> None:
    entry = {"url": URL, "sha256": "ab"}
    assert confirm(entry, fetched, lock, label="ViT") == "ab"
    assert confirm({"path": str(fetched)}, fetched, lock, label="ViT") is None
    assert not lock.exists()


def test_a_download_from_a_cache_is_recorded_and_must_match(lock: Path, fetched: Path) -> None:
    for _ in range(2):
        assert confirm({"url": URL}, fetched, lock, label="ViT") == SHA256
        assert find_lock_entry(lock, URL) == Entry(SHA256, len(DATA))
    fetched.write_bytes(OTHER)
    found = hashlib.sha256(OTHER).hexdigest()
    assert refusal(confirm, {"url": URL}, fetched, lock, label="ViT") == (
        f"ViT: {fetched} has the SHA-256 {found} where {lock} says {SHA256}: it is another file or "
        "a damaged one, so delete it, and if it is a link what it leads to, and run again."
    )
