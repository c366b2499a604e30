from copy import deepcopy
from pathlib import Path

import pytest

from tests.helpers.jobs import text_of_record
from tests.helpers.refusals import refusal
from tests.helpers.web import Site, status, whole
from tests.security.test_settings import STUDY, refusal_of_study
from vitscope.data.archives import find_official_archive
from vitscope.data.sources import cifar10
from vitscope.networks.checkpoints.weight_sources import describe_source, download_checkpoint
from vitscope.web import redact

SECRET = "hunter2-0123456789abcdef"
QUERY = f"?X-Signature={SECRET}=&expires=1"


def test_addresses_stay_apart_and_keep_what_is_no_secret() -> None:
    one, other = (redact(f"https://host/a.pth?id={value}") for value in ("1", "2"))
    assert one != other
    assert one.startswith("https://host/a.pth?id=~")
    assert redact("https://host/a.pth") == "https://host/a.pth"
    assert redact("https://host/a%20b/c.pth?x=1&y=2").startswith("https://host/a%20b/c.pth?x=~")
    hosts = [f"https://user:{SECRET}@host/a", f"https://{SECRET}@host/a"]
    hosts += [f"http://us@er:{SECRET}@host/", f"http:user:{SECRET}@host/"]
    places = [
        *(QUERY, f"?{SECRET}", f"#{SECRET}", f"?a=b={SECRET}", f"?{SECRET}=", f"?{SECRET}=1"),
        # The signatures of object stores end so.
        *(f"?sig={SECRET}=", f"?sig={SECRET}==&se=2"),
        *(f"?token={SECRET}=b", f"?token=a;b={SECRET}", f"?token=a;{SECRET}"),
        *(f"?token=a?b={SECRET}", f"?token%3D{SECRET}", f";token={SECRET}/b.pth"),
        *(f"%3Btoken%3d{SECRET}", f"&token={SECRET}", f"/token={SECRET}/a", f"?~{SECRET}"),
    ]
    for address in (*hosts, *(f"https://host/a{place}" for place in places)):
        assert SECRET not in redact(address)


def test_a_download_with_a_token_leaves_no_trace_of_it(site: Site, tmp_path: Path) -> None:
    site.at("/a.pth", whole(b"\0weights", ETag='"1"'))
    entry = {"url": f"{site.root}/a.pth{QUERY}"}
    said: list[str] = []
    lock, target = tmp_path / "own.lock.yaml", tmp_path / "a.checkpoint"
    for _ in range(2):
        download_checkpoint(entry, target, lock, label="ViT", say=said.append)
    assert target.read_bytes() == b"\0weights"
    assert "a.pth?X-Signature=~" in lock.read_text()
    texts = [*said, lock.read_text(), describe_source(entry)]
    assert not [text for text in texts if SECRET in text]


@pytest.mark.parametrize("code", [403, 404, 418, 302, 500])
def test_a_failed_download_does_not_tell_its_token(site: Site, tmp_path: Path, code: int) -> None:
    answer = status(code, Location=f"ftp://user:{SECRET}@host/x{QUERY}")
    site.at("/a.pth", answer)
    said: list[str] = []
    options = {"label": "ViT", "attempts": 2, "pause": 0.0, "say": said.append}
    entry = {"url": f"{site.root}/a.pth{QUERY}"}
    sentence = refusal(download_checkpoint, entry, tmp_path / "a", tmp_path / "lock", **options)
    assert not [text for text in [*said, sentence] if SECRET in text]
    entry = {"url": f"{site.root}/a{QUERY}"}
    assert SECRET not in refusal(find_official_archive, cifar10.SOURCE["archive"], entry, "data")


@pytest.mark.parametrize("place", ["checkpoint", "source"])
@pytest.mark.parametrize("user", ["user:" + SECRET, SECRET, "user:p@ss" + SECRET])
def test_a_password_in_an_address_is_refused_and_not_repeated(
    tmp_path: Path, place: str, user: str
) -> None:
    study = deepcopy(STUDY)
    if place == "checkpoint":
        study["models"]["vit"]["checkpoint"] = {"url": f"https://{user}@host/a.pth"}
    else:
        source = {"kind": "cifar10", "url": f"https://{user}@host/cifar-10-binary.tar.gz"}
        study["data"]["shapes32"]["source"] = source
    sentence = refusal_of_study(tmp_path, study)
    assert "holds no user name or password" in sentence
    assert SECRET not in sentence


def test_the_record_of_a_run_shows_no_token(tmp_path: Path) -> None:
    study = deepcopy(STUDY)
    study["models"]["vit"]["checkpoint"] = {"url": f"https://host/a.pth{QUERY}"}
    record = text_of_record(tmp_path, study)
    assert SECRET not in record
    assert "https://host/a.pth?X-Signature=~" in record
    assert study["models"]["vit"]["checkpoint"]["url"].endswith(QUERY)
