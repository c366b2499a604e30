"""Download files whole and checked, or not at all; resume downloads that were interrupted."""

import contextlib
import fcntl
import json
import os
import random
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead, InvalidURL
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from vitscope import __version__
from vitscope.errors import VitscopeError, visible
from vitscope.files.untrusted import disguise_of
from vitscope.files.whole import md5_of, sha256_of
from vitscope.progress import Clock, Say, say_on_stderr
from vitscope.web import redact

CHUNK = 1 << 20
LONGEST_PAUSE = 120.0
# The minimum speed in bytes per second: a tenth of what the slowest modems reach.
LEAST_SPEED = 100
# How many times the longest silence the headers may take, with all redirects.
SILENCES = 4
TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
GONE = ("does not exist", "correct the address")
FORBIDDEN = ("may not be read without permission", "download it by hand and give its path")
# For each status code, what to say about the address, and what to advise.
REFUSALS = dict.fromkeys((404, 410), GONE) | dict.fromkeys((401, 403, 407, 451), FORBIDDEN)


class _TryAgainError(Exception):
    """A failure that another attempt may cure; its text is the beginning of a sentence."""

    def __init__(self, sentence: str, pause: float | None, afresh: bool) -> None:
        super().__init__(sentence)
        self.pause = pause
        self.afresh = afresh


@dataclass(frozen=True)
class _DownloadSource:
    url: str
    label: str
    sha256: str | None
    md5: str | None
    size: int | None
    said_by: str
    timeout: float

    def failure(self, what: str, advice: str) -> VitscopeError:
        return VitscopeError(f"{self.label}: {redact(self.url)} {what}: {advice}.")

    def try_again(
        self, what: str, pause: float | None = None, afresh: bool = False
    ) -> _TryAgainError:
        """Return an error that allows another attempt; `afresh` discards the bytes received."""
        return _TryAgainError(f"{self.label}: {redact(self.url)} {what}", pause, afresh)

    def address_error(self) -> VitscopeError:
        return VitscopeError(
            f"{self.label}: '{redact(self.url)}' is not a web address: give one that begins with "
            f"https:// or http:// and holds no user name or password."
        )

    def disguise_error(self, disguise: str) -> VitscopeError:
        return self.failure(
            f"gives {disguise} and not the file",
            "open it in a browser to see why, and give the address of the file itself",
        )

    def check_size(self, size: int | None) -> None:
        if None not in (size, self.size) and size != self.size:
            raise self.failure(
                f"has {size} bytes where {self.said_by} says {self.size}",
                "it is another file, so correct the address or the size",
            )


def _format_megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


class _Redirects(HTTPRedirectHandler):
    """Follows redirects only to web addresses, and never from https to http."""

    def http_error_302(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage
    ) -> HTTPResponse | None:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (ValueError, InvalidURL) as error:  # The redirect's target is no valid address.
            raise HTTPError(req.full_url, code, msg, headers, fp) from error

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        place = urlsplit(newurl)
        if place.scheme not in {"https", req.type} or "@" in place.netloc:
            raise HTTPError(req.full_url, code, msg, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _read_retry_after(retry_after: str | None) -> float | None:
    if not retry_after:
        return None
    try:
        if retry_after.isascii() and retry_after.strip().isdigit():
            return float(retry_after)
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _explain_status(source: _DownloadSource, error: HTTPError) -> Exception:
    status = f"{error.code} {error.reason}".strip()
    if error.code == 416:
        return source.try_again("does not send the rest of what is here already", 0.0, afresh=True)
    if error.code in TEMPORARY:
        return source.try_again(
            f"is answered with {status}", _read_retry_after(error.headers["Retry-After"])
        )
    if 300 <= error.code < 400:
        place = redact(error.headers["Location"] or "")
        return source.failure(
            f"leads on to an address that is not followed ({place})",
            "give the address of the file itself",
        )
    what, advice = REFUSALS.get(error.code, ("cannot be downloaded", "correct the address"))
    return source.failure(f"{what} ({status})", advice)


def _explain_connection_error(source: _DownloadSource, reason: object) -> Exception:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return source.failure(
            f"has a certificate that is not valid ({reason.verify_message.rstrip('.')})",
            "check the address and the clock of this machine",
        )
    if isinstance(reason, TimeoutError):
        return source.try_again(f"sent nothing for {source.timeout:g} s")
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return source.try_again(f"cannot be reached ({' '.join(words.split()).rstrip('.')})")


def _open_in_time(source: _DownloadSource, request: Request) -> HTTPResponse:
    """Open an address in a thread, which is left alone if the headers are too slow.

    Each byte of a header may come just before the timeout: a timeout alone would never end.
    """
    answer: Future[HTTPResponse] = Future()

    def open_address() -> None:
        try:
            answer.set_result(build_opener(_Redirects).open(request, timeout=source.timeout))
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=open_address, daemon=True).start()
    patience = SILENCES * source.timeout
    if not wait([answer], patience).done:
        raise source.try_again(f"sent no whole headers for {patience:g} s")
    return answer.result()


@contextlib.contextmanager
def _open_response(source: _DownloadSource, headers: Mapping[str, str]) -> Iterator[HTTPResponse]:
    try:
        asked = {"Accept-Encoding": "identity", "User-Agent": f"vitscope/{__version__}", **headers}
        request = Request(source.url, headers=asked)
        response = _open_in_time(source, request)
    except HTTPError as error:
        error.close()
        raise _explain_status(source, error) from error
    except URLError as error:
        raise _explain_connection_error(source, error.reason) from error
    except (InvalidURL, ValueError) as error:
        raise source.address_error() from error
    except (OSError, HTTPException) as error:
        raise _explain_connection_error(source, error) from error
    with response:
        yield response


def _is_download_address(url: str) -> bool:
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        return named and parts.scheme in {"http", "https"}
    return False


def _announced_size(response: HTTPResponse) -> int | None:
    if response.status == 206:
        size = (response.headers["Content-Range"] or "").rpartition("/")[2]
    else:
        size = response.headers["Content-Length"] or ""
    return int(size) if re.fullmatch(r"[0-9]{1,18}", size) else None


def _read_chunks(source: _DownloadSource, response: HTTPResponse) -> Iterator[bytes]:
    """Yield bytes as they arrive; raise an error if they are too slow, or if not all of them come.

    Only the time that the server takes counts, and not what the caller does meanwhile.
    """
    waited, came, begun = 0.0, 0, time.monotonic()
    try:
        while data := response.read1(CHUNK):
            waited, came = waited + time.monotonic() - begun, came + len(data)
            if waited > 2 * source.timeout:
                if came < LEAST_SPEED * waited:
                    raise source.try_again(f"sends less than {LEAST_SPEED} bytes a second")
                waited, came = 0.0, 0
            yield data
            begun = time.monotonic()
    except IncompleteRead as error:
        raise source.try_again("broke off in the middle") from error
    except (OSError, HTTPException) as error:
        raise _explain_connection_error(source, error) from error


class _Partial:
    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f".{target.name}.partial")
        self._note = target.with_name(f".{target.name}.partial.json")
        target.parent.mkdir(parents=True, exist_ok=True)
        self.file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")

    def lock(self) -> bool:
        """Keep other processes out; return False if one is already at work."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(self.file.fileno()), self.path.stat())
        except (BlockingIOError, FileNotFoundError):
            return False
        except OSError:
            return True  # This file system has no locks.

    def resumable(self, url: str) -> tuple[int, str, int]:
        """Return the number of bytes received, and the ETag and size of the file's version.

        The next attempt requests only the missing bytes, and only of this version. Without a usable
        note, the result is (0, "", 0).
        """
        size = self.file.seek(0, os.SEEK_END)
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            return (size, str(note["etag"]), note["size"]) if note["url"] == url else (0, "", 0)
        except (OSError, ValueError, KeyError, TypeError):
            return 0, "", 0

    def empty(self) -> None:
        self._note.unlink(missing_ok=True)
        self.file.truncate(0)

    def begin(self, url: str, etag: str | None, size: int | None) -> None:
        """Delete all bytes; note the ETag and size of the next version, if it has both."""
        self.empty()
        if None not in (etag, size):
            note = json.dumps({"url": url, "etag": etag, "size": size})
            self._note.write_text(note, encoding="utf-8")

    def remove(self) -> None:
        self._note.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def become(self, target: Path) -> None:
        self.path.replace(target)
        self._note.unlink(missing_ok=True)


def _fill_partial_download(source: _DownloadSource, partial: _Partial, say: Say) -> bool:
    """Download to the partial file; return whether its first bytes are from an earlier attempt."""
    offset, etag, size = partial.resumable(redact(source.url))
    asked = {"Range": f"bytes={offset}-", "If-Range": etag} if offset else {}
    with _open_response(source, asked) as response:
        resumed = response.status == 206
        span, total = response.headers["Content-Range"] or "", _announced_size(response)
        tag = response.headers["ETag"] or ""
        # Only a strong entity tag promises the same bytes.
        strong = None if tag.startswith("W/") else tag or None
        version = (span.startswith(f"bytes {offset}-"), strong, total)
        if resumed and version != (True, etag, size):
            raise source.try_again("changed during the download", 0.0, afresh=True)
        # Refuse a response that cannot be the file before reading its bytes.
        if response.headers.get_content_type() == "text/html":
            raise source.disguise_error("a web page")
        encoding = response.headers["Content-Encoding"] or "identity"
        if encoding.strip().lower() != "identity":
            raise source.failure(
                f"comes in the encoding {visible(encoding)[:40]}, which was not asked for",
                "download it by hand and give its path, or give another address",
            )
        source.check_size(total)
        if not resumed:
            partial.begin(redact(source.url), strong, total)
        done = partial.file.seek(offset if resumed else 0)
        clock = Clock()
        for data in _read_chunks(source, response):
            partial.file.write(data)
            done += len(data)
            if clock.seconds_if_due() is not None:
                of = f" of {_format_megabytes(total)} ({100 * done // total} %)" if total else ""
                say(f"{source.label}: {_format_megabytes(done)}{of}")
            if done > (source.size or done):
                source.check_size(done)
        partial.file.flush()
    if total is not None and done != total:
        raise source.try_again(f"broke off after {done} of {total} bytes")
    return resumed


def _check_digest(
    source: _DownloadSource, name: str, found: str, expected: str | None, resumed: bool
) -> None:
    if expected is None or found == expected.lower():
        return
    if resumed:
        # Bytes from an earlier attempt may be damaged, so download the whole file again.
        raise source.try_again("came damaged", 0.0, afresh=True)
    raise source.failure(
        f"has the {name} {found} where {source.said_by} says {expected}",
        "it is another file or a damaged one, so correct the address or the digest",
    )


def _download_once(source: _DownloadSource, partial: _Partial, say: Say) -> str:
    resumed = _fill_partial_download(source, partial, say)
    size = partial.path.stat().st_size
    if size == 0:
        raise source.failure("is empty", "correct the address")
    if disguise := disguise_of(partial.path):
        raise source.disguise_error(disguise)
    source.check_size(size)
    sha256 = sha256_of(partial.path)
    _check_digest(source, "SHA-256", sha256, source.sha256, resumed)
    if source.md5 is not None:
        _check_digest(source, "MD5", md5_of(partial.path), source.md5, resumed)
    return sha256


def _download_with_retries(
    source: _DownloadSource, partial: _Partial, attempts: int, pause: float, say: Say
) -> str:
    for attempt in range(1, attempts + 1):
        try:
            return _download_once(source, partial, say)
        except _TryAgainError as error:
            if error.afresh:
                partial.empty()
            if attempt == attempts:
                raise VitscopeError(
                    f"{error} (attempt {attempt} of {attempts}): check the network and try "
                    f"again later, or download it by hand and give its path."
                ) from error
            growing = pause * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
            wait = min(LONGEST_PAUSE, growing if error.pause is None else error.pause)
            say(f"{error}: next attempt, {attempt + 1} of {attempts}, in {wait:.0f} s")
            time.sleep(wait)
    raise ValueError("a download takes at least one attempt")


def fetch(
    url: str,
    path: Path | str,
    *,
    label: str,
    sha256: str | None = None,
    md5: str | None = None,
    size: int | None = None,
    said_by: str = "the study",
    timeout: float = 30.0,
    attempts: int = 5,
    pause: float = 1.0,
    say: Say = say_on_stderr,
) -> str:
    """Download `url` to `path` and return its SHA-256; all messages call the file `label`."""
    target = Path(path)
    source = _DownloadSource(url, label, sha256, md5, size, said_by, timeout)
    if not _is_download_address(url):
        raise source.address_error()
    try:
        partial = _Partial(target)
        with partial.file:
            if not partial.lock():
                raise VitscopeError(
                    f"{label}: another process is downloading {target}: wait until it has ended."
                )
            try:
                digest = _download_with_retries(source, partial, attempts, pause, say)
                partial.become(target)
            except Exception:
                partial.remove()
                raise
    except OSError as error:
        raise VitscopeError(
            f"{label}: cannot write {target} ({error.strerror or error}): make room or give "
            f"another place."
        ) from error
    say(f"{label}: downloaded {_format_megabytes(target.stat().st_size)}")
    return digest
