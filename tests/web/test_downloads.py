import gzip
import hashlib
import json
import random
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.helpers.processes import full_disk
from tests.helpers.refusals import refusal
from tests.helpers.web import (
    Answer,
    Handler,
    Site,
    broken,
    chunked,
    leading_to,
    ranged,
    running_site,
    silent,
    stalling,
    status,
    whole,
)
from tests.slurm.cluster import wait_for
from vitscope.errors import VitscopeError
from vitscope.web import downloads
from vitscope.web.downloads import fetch

DATA = random.Random(0).randbytes(300_000)
OTHER = random.Random(1).randbytes(300_000)
SHA256 = hashlib.sha256(DATA).hexdigest()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "weights.bin"


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def get(target: Path, said: list[str]) -> Callable[..., str]:
    def run(url: str, **options: object) -> str:
        settings = {"label": "ResNet", "pause": 0.001, "timeout": 5.0, "attempts": 3}
        return fetch(url, target, say=said.append, **(settings | options))  # type: ignore[arg-type]

    return run


def failure(get: Callable[..., str], target: Path, url: str, **options: object) -> str:
    """Return the sentence of a download that fails and leaves nothing."""
    sentence = refusal(get, url, **options)
    assert [*target.parent.glob("*")] == []
    assert sentence.startswith("ResNet: ")
    assert sentence.endswith(".")
    return sentence


FETCH = """
import sys; from vitscope.web import downloads
from vitscope.web.downloads import fetch
fetch(sys.argv[1], sys.argv[2], label='ResNet')
"""


def test_a_file_arrives_whole_and_alone(site, get, target, said):
    url = site.at("/w", whole(DATA))
    md5 = hashlib.md5(DATA).hexdigest()
    assert get(url, sha256=SHA256.upper(), md5=md5, size=len(DATA)) == SHA256
    assert target.read_bytes() == DATA
    assert list(target.parent.iterdir()) == [target]
    assert said == ["ResNet: downloaded 0.3 MB"]
    # Redirects within the web are followed.
    assert get(site.at("/old", status(302, Location="/w"))) == SHA256
    # A picture in digits is a file.
    picture = b"P3 1 1 255 0 0 0\n"
    get(site.at("/picture", whole(picture)))
    assert target.read_bytes() == picture


def test_a_failure_leaves_an_older_file_as_it_is(site, get, target):
    target.parent.mkdir()
    target.write_bytes(b"old")
    with pytest.raises(VitscopeError):
        get(site.at("/w", status(404)))
    assert [path.read_bytes() for path in target.parent.iterdir()] == [b"old"]


@pytest.fixture
def storage(site: Site) -> Iterator[Site]:
    with running_site() as running:
        yield running


def test_signed_addresses_at_another_host_are_followed(site, storage, get, target, said):
    broken_off = broken(DATA, 100_000, ETag='"a"')
    url = site.at("/v0.1/w", leading_to(storage, "/asset", broken_off, ranged(DATA, '"a"')))
    assert get(url) == SHA256
    assert target.read_bytes() == DATA
    # The first host is asked each time, since an address of the other is good for once.
    assert len(site.asked("/v0.1/w")) == 2
    asked = storage.asked("/asset")
    assert [headers.get("Range") for headers in asked] == [None, "bytes=100000-"]
    assert asked[0]["Host"].startswith("localhost:")
    assert said[0].startswith(f"ResNet: {url} broke off after 100000 of {len(DATA)} bytes")


def test_a_signature_that_has_expired_is_not_told(site, storage, get, target):
    url = site.at("/v0.1/w", leading_to(storage, "/asset", whole(DATA), expired=True))
    sentence = failure(get, target, url)
    assert f"{url} " in sentence
    assert "(403 Forbidden)" in sentence
    assert "Signature" not in sentence
    assert len(storage.asked("/asset")) == 1


def endless(handler: Handler) -> None:
    handler.begin(200)
    while True:
        handler.wfile.write(DATA)


def dripping(begin: Callable[[Handler], object]) -> Answer:
    """Send a byte before a client's patience ends, and again."""

    def answer(handler: Handler) -> None:
        begin(handler)
        for _ in range(100):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            if handler.server.released.wait(0.05):
                return

    return answer


DRIPS = dripping(lambda handler: handler.begin(200, Content_Length=len(DATA)))
DRIPS_HEADERS = dripping(lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: "))


def slowly(handler: Handler) -> None:
    """Send 60,000 bytes in more than twice the time that a server may be silent."""
    handler.begin(200, Content_Length=60_000)
    for start in range(0, 60_000, 10_000):
        handler.wfile.write(DATA[start : start + 10_000])
        handler.server.released.wait(0.1)


NOT_FOLLOWED = "leads on to an address that is not followed"


def leads_to(place: str) -> Answer:
    return status(302, Location=place)


PAGE = "{url} gives a web page and not the file: open it in a browser"
OTHER_SIZE = "bytes where the study says {}: it is another file"
OTHER_DIGEST = f"has the SHA-256 {hashlib.sha256(OTHER).hexdigest()} where the study says {SHA256}"
MD5_OF_A_FILE = f"has the MD5 {hashlib.md5(OTHER).hexdigest()} where paper.lock.yaml says 00"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
# What a server does, what is said of it, how often it is asked, and what was known of the file.
Known = dict[str, object]
FAULTS: dict[str, tuple[Answer, str, int, Known]] = {
    "leads to FTP": (leads_to("ftp://127.0.0.1/w"), "give the address of the file itself", 1, {}),
    "missing": (status(404), "{url} does not exist (404 ", 1, {}),
    "forbidden": (status(403), "download it by hand and give its path", 1, {}),
    "wrong": (status(400), "cannot be downloaded (400 Bad Request): correct the address", 1, {}),
    "busy": (status(503), "is answered with 503 Service Unavailable (attempt 3 of 3)", 3, {}),
    "silent": (silent, "sent nothing for 0.2 s (attempt 2 of 2)", 2, {"attempts": 2}),
    "stalls": (stalling(DATA, 1000), "sent nothing for 0.2 s", 1, {"attempts": 1}),
    "breaks off": (broken(DATA, 1000), f"broke off after 1000 of {len(DATA)} bytes", 3, {}),
    "breaks off, chunked": (chunked(DATA, complete=False), "broke off in the middle", 3, {}),
    "announces a page": (
        whole(b"<p>Sign in</p>", Content_Type="text/html; charset=utf-8"),
        *(PAGE, 1, {"sha256": SHA256}),
    ),
    "has a page": (
        whole(b"\n <!DOCTYPE html><title>Sign in</title>", Content_Type="application/zip"),
        *(PAGE, 1, {"sha256": SHA256}),
    ),
    "has an answer in XML": (
        whole(b'\xef\xbb\xbf<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'),
        *(PAGE, 1, {}),
    ),
    "has a page after a remark": (whole(b"<!-- moved --><html></html>"), PAGE, 1, {}),
    "has an answer in JSON": (whole(b'{"error": "denied"}'), "gives an answer in JSON", 1, {}),
    "has a page in UTF-16": (
        whole("<html>Sign in</html>".encode("utf-16")),
        *("gives a text in UTF-16 and not the file", 1, {}),
    ),
    "has a page in UTF-16 without its mark": (
        whole("<html>Sign in</html>".encode("utf-16-be")),
        *("gives a text in UTF-16 and not the file", 1, {}),
    ),
    "has a packed page": (
        whole(gzip.compress(b"<html>Sign in</html>")),
        *("gives a web page, packed by gzip, and not the file", 1, {}),
    ),
    "has what is packed": (
        whole(gzip.compress(DATA), Content_Encoding="gzip"),
        *("comes in the encoding gzip, which was not asked for", 1, {}),
    ),
    "has a text": (whole(b"Access denied"), "{url} gives a text and not the file", 1, {}),
    "leads to a password": (leads_to("http://u:hunter2@127.0.0.1/w"), NOT_FOLLOWED, 1, {}),
    "leads to no port": (leads_to("http://127.0.0.1:x/w"), NOT_FOLLOWED, 1, {}),
    "leads to no host": (leads_to("//[::1"), NOT_FOLLOWED, 1, {}),
    "leads in a circle": (leads_to("/w"), NOT_FOLLOWED, 5, {}),
    "drips": (DRIPS, "sends less than 100 bytes a second", 1, {"attempts": 1}),
    "drips headers": (DRIPS_HEADERS, "sent no whole headers for 0.8 s", 1, {"attempts": 1}),
    "has a pointer": (whole(POINTER), "gives a Git LFS pointer and not the file", 1, {}),
    "has nothing": (whole(b""), "is empty: correct the address", 1, {}),
    "has another digest": (whole(OTHER), OTHER_DIGEST, 1, {"sha256": SHA256}),
    "has another digest than a file says": (
        *(whole(OTHER), MD5_OF_A_FILE, 1),
        {"md5": "0" * 32, "said_by": "paper.lock.yaml"},
    ),
    "has more": (whole(DATA), OTHER_SIZE.format(299_999), 1, {"size": 299_999}),
    "has less, chunked": (chunked(DATA), OTHER_SIZE.format(300_001), 1, {"size": 300_001}),
    "has no end": (endless, OTHER_SIZE.format(300_000), 1, {"size": 300_000}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_server_ends_in_one_sentence(site, get, target, name):
    answer, says, times, known = FAULTS[name]
    url = site.at("/w", answer)
    waits = {"timeout": 0.2} if name in {"silent", "stalls", "drips", "drips headers"} else {}
    sentence = failure(get, target, url, **known, **waits)
    assert says.replace("{url}", url) in sentence
    assert "hunter2" not in sentence
    assert len(site.asked("/w")) == times


def test_a_slow_server_and_a_slow_disk_are_waited_for(site, get, target, monkeypatch):
    assert get(site.at("/slow", slowly), timeout=0.2, attempts=1)
    assert target.read_bytes() == DATA[:60_000]
    # What takes the time here is this side alone.
    monkeypatch.setattr(downloads, "CHUNK", 1)
    monkeypatch.setattr(downloads.Clock, "seconds_if_due", lambda _: time.sleep(0.02))
    get(site.at("/small", whole(b"\x00" * 20)), timeout=0.05, attempts=1)
    assert target.read_bytes() == b"\x00" * 20


@pytest.mark.parametrize("length", ["\xb2", "9" * 5000, "-1", "1e3", "\u0663"])
def test_an_odd_length_is_none(site, get, target, length):
    def odd(handler: Handler) -> None:
        handler.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
        handler.wfile.write(DATA)

    assert get(site.at("/w", odd)) == SHA256
    assert list(target.parent.iterdir()) == [target]


def test_an_unknown_failure_leaves_nothing(site, get, target, monkeypatch):
    monkeypatch.setattr(downloads, "disguise_of", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        get(site.at("/w", whole(DATA)))
    assert list(target.parent.iterdir()) == []


NO_ADDRESS = ("file:///etc/w", "weights.bin", "http://", "http://host:port/w", "https:///w")


@pytest.mark.parametrize("url", [*NO_ADDRESS, "http://host/a b"])
def test_only_web_addresses_are_downloaded(get, target, url):
    sentence = failure(get, target, url)
    assert "is not a web address: give one that begins with https://" in sentence


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again(site, get, target, said, code):
    url = site.at("/w", status(code), status(code), whole(DATA))
    assert get(url) == SHA256
    assert f"is answered with {code}" in said[0]
    assert "next attempt, 2 of 3" in said[0]
    assert "next attempt, 3 of 3" in said[1]


def test_pauses_grow_and_differ(site, get, monkeypatch, target):
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    failure(get, target, site.at("/w", status(503)), pause=8.0, attempts=7)
    for index, pause in enumerate(pauses):
        assert min(120, 8 * 2**index * 0.5) <= pause <= min(120, 8 * 2**index * 1.5)
        assert pause == 120 or pause != 8 * 2**index


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [("7", 7, 7), (lambda: formatdate(time.time() + 50, usegmt=True), 47, 50), ("9999", 120, 120)],
    ids=["seconds", "date", "too long"],
)
def test_the_pause_a_server_asks_for_is_kept(site, get, monkeypatch, header, low, high):
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    wanted = header() if callable(header) else header
    get(site.at("/w", status(503, Retry_After=wanted), whole(DATA)))
    assert low <= pauses[0] <= high


def test_without_a_network_the_sentence_says_so(get, target):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/w"
        sentence = failure(get, target, url)
    assert f"{url} cannot be reached (Connection refused) (attempt 3 of 3)" in sentence
    assert "check the network" in sentence


def test_a_server_that_is_not_of_the_web_is_reported(get, target):
    def greet(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"220 mail.example ready\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=greet, args=[server])
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/w"
        sentence = failure(get, target, url, attempts=1)
        thread.join()
    assert "cannot be reached (220 mail.example ready)" in sentence


@pytest.fixture
def secure_site(site: Site, tmp_path: Path) -> tuple[Site, Path]:
    """Return a site behind https, and the certificate that a client may choose to trust."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    site.server.socket = context.wrap_socket(site.server.socket, server_side=True)
    site.root = site.root.replace("http:", "https:")
    return site, certificate


def test_a_certificate_that_is_not_trusted_is_reported_at_once(secure_site, get, target, said):
    url = secure_site[0].at("/w", whole(DATA))
    sentence = failure(get, target, url)
    assert f"{url} has a certificate that is not valid (self" in sentence
    assert "check the address and the clock of this machine" in sentence
    assert said == []


def test_https_is_followed_to_https_and_not_to_http(secure_site, get, target, monkeypatch):
    site, certificate = secure_site
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    site.at("/w", whole(DATA))
    assert get(site.at("/safe", status(302, Location="/w"))) == SHA256
    target.unlink()
    with running_site() as plain:
        unsafe = plain.at("/w", whole(DATA))
        sentence = failure(get, target, site.at("/unsafe", status(302, Location=unsafe)))
        assert plain.asked("/w") == []
    assert f"leads on to an address that is not followed ({unsafe})" in sentence


def rest_of(data: bytes, first: int, end: int, etag: str, size: object = len(DATA)) -> Answer:
    """Send some bytes as if they had been asked for."""

    def answer(handler: Handler) -> None:
        content_range = f"bytes {first}-{end - 1}/{size}"
        length = end - first
        handler.begin(206, Content_Length=length, Content_Range=content_range, ETag=etag)
        handler.wfile.write(data[first:end])

    return answer


ONE, WHOLE = '"one"', whole(DATA)
FROM, LAST = "bytes=100000-", len(DATA)
HALF, HALF_OF_OTHER = (broken(data, 100_000, ETag=ONE) for data in (DATA, OTHER))
# What it is asked for where what came is of no use.
TWICE, AGAIN = [None, None], [None, FROM, None]
# What a server does at one attempt after the other, and which part it is asked for.
BROKEN_OFF: dict[str, tuple[list[Answer], list[str | None]]] = {
    "the rest is asked for": ([HALF, ranged(DATA, ONE)], [None, FROM]),
    "the file has changed": ([HALF_OF_OTHER, ranged(DATA, '"two"')], [None, FROM]),
    "the new file is shorter": (
        [broken(OTHER * 2, 400_000, ETag=ONE), ranged(DATA, '"two"')],
        [None, "bytes=400000-"],
    ),
    "all is sent again": ([HALF, whole(DATA, ETag=ONE)], [None, FROM]),
    "the rest is of another file": (
        [HALF_OF_OTHER, rest_of(DATA, 100_000, LAST, '"two"'), WHOLE],
        AGAIN,
    ),
    # As many bytes as are missing, and not those.
    "another part is sent": ([HALF, rest_of(DATA, 0, 200_000, ONE), WHOLE], AGAIN),
    "part of the rest is sent": (
        [HALF, rest_of(DATA, 100_000, 200_000, ONE), ranged(DATA, ONE)],
        [None, FROM, "bytes=200000-"],
    ),
    "the version is weak": ([broken(DATA, 100_000, ETag='W/"one"'), WHOLE], TWICE),
    "the server stalls": ([stalling(DATA, 1000), WHOLE], TWICE),
    "the server sends no size": ([chunked(DATA)], [None]),
    "a senseless pause is asked for": ([status(503, Retry_After="soon"), WHOLE], TWICE),
    "a pause of odd digits is asked for": ([status(503, Retry_After="\xb2"), WHOLE], TWICE),
    "a pause beyond all calendars is asked for": (
        [status(503, Retry_After=f"Mon, {'9' * 30} Jan 2026 00:00:00 GMT"), WHOLE],
        TWICE,
    ),
    "the rest is of a longer file": (
        [HALF, rest_of(DATA * 2, 100_000, 2 * LAST, ONE, 2 * LAST), WHOLE],
        AGAIN,
    ),
    "the rest is of a file of any length": (
        [HALF, rest_of(DATA * 2, 100_000, 2 * LAST, ONE, "*"), WHOLE],
        AGAIN,
    ),
    "the rest does not say which it is": (
        [HALF, lambda handler: handler.begin(206, Content_Length=0, ETag=ONE), WHOLE],
        AGAIN,
    ),
}


@pytest.mark.parametrize("name", BROKEN_OFF)
def test_two_files_are_never_joined(site, get, target, name):
    answers, parts = BROKEN_OFF[name]
    assert get(site.at("/w", *answers), timeout=0.2) == SHA256
    assert target.read_bytes() == DATA
    assert [headers.get("Range") for headers in site.asked("/w")] == parts
    assert {headers.get("If-Range") for headers in site.asked("/w")} <= {None, '"one"'}


# What a killed download has left, whether it is asked to go on, and whether it does.
LEFT = {
    "of another address": (OTHER[:1000], "/other", [False]),
    "without its note": (OTHER[:1000], None, [False]),
    "damaged": (b"damaged", "/w", [True, False]),
    "too long": (DATA, "/w", [True, False]),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_a_killed_download_left_is_not_used(site, get, target, name):
    data, place, asked = LEFT[name]
    url = site.at("/w", ranged(DATA, "one"))
    target.parent.mkdir(parents=True)
    target.with_name(f".{target.name}.partial").write_bytes(data)
    note = json.dumps({"url": f"{site.root}{place}", "etag": "one", "size": LAST}) if place else "{"
    target.with_name(f".{target.name}.partial.json").write_text(note)
    assert get(url, sha256=SHA256) == SHA256
    assert [("Range" in headers) for headers in site.asked("/w")] == asked


def test_a_killed_download_is_resumed(site, target, get):
    url = site.at("/w", stalling(DATA, 100_000, ETag='"one"'), ranged(DATA, '"one"'))
    process = subprocess.Popen([sys.executable, "-c", FETCH, url, str(target)], cwd=ROOT)
    partial = target.with_name(f".{target.name}.partial")
    wait_for(lambda: partial.exists() and partial.stat().st_size >= 65_536, "nothing came", 20)
    process.kill()
    process.wait()
    assert not target.exists()
    there = partial.stat().st_size
    assert get(url) == SHA256
    assert site.asked("/w")[1]["Range"] == f"bytes={there}-"
    assert list(target.parent.iterdir()) == [target]


def test_a_place_that_cannot_be_written_is_reported_and_left_clean(site, get, target):
    url = site.at("/w", whole(DATA))
    with full_disk(100_000):
        sentence = failure(get, target, url)
    assert "cannot write" in sentence
    assert "make room" in sentence
    target.mkdir(parents=True)
    with pytest.raises(VitscopeError, match=r"cannot write .*weights.bin \(Is a directory\)"):
        get(url)
    assert list(target.parent.iterdir()) == [target]


def test_two_processes_do_not_write_the_same_file(site, get, target):
    url = site.at("/w", stalling(DATA, 1000))
    process = subprocess.Popen([sys.executable, "-c", FETCH, url, str(target)], cwd=ROOT)
    try:
        wait_for(lambda: site.asked("/w"), "nothing was asked for", 20)
        assert "another process is downloading" in refusal(get, url)
        assert target.with_name(f".{target.name}.partial").exists()
    finally:
        process.kill()
        process.wait()


def test_news_is_reported_during_a_long_download(site, get, said, monkeypatch):
    def slowly(handler):
        handler.begin(200, Content_Length=2_000_000)
        for _ in range(4):
            handler.wfile.write(bytes(500_000))
            handler.wfile.flush()
            time.sleep(0.05)

    monkeypatch.setattr("vitscope.progress.SECONDS_BETWEEN_NEWS", 0.04)
    get(site.at("/w", slowly))
    assert any("of 2.0 MB (" in line for line in said[:-1])
    assert said[-1] == "ResNet: downloaded 2.0 MB"
