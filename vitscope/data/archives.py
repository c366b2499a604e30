"""Official archives of data sets: their addresses, downloads, and how to read them safely."""

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from vitscope.errors import VitscopeError, quoted
from vitscope.files.whole import md5_of
from vitscope.progress import Say
from vitscope.web import redact
from vitscope.web.downloads import fetch

LARGEST_MEMBER = 200_000_000
LARGEST_ARCHIVE = 400_000_000


def find_official_archive(
    archive: Mapping[str, Any], source: Mapping[str, Any], label: str
) -> tuple[str, str, Mapping[str, Any]]:
    """Return the URL and file name of a source's archive, and its `md5` and `size` if known."""
    files, url = archive["files"], source.get("url", archive["url"])
    file = PurePosixPath(urlsplit(url).path).name
    if file not in files:
        raise VitscopeError(
            f"{label}: {redact(url)} names none of the official archives {' and '.join(files)}: "
            f"correct `url`, or leave it out."
        )
    return url, file, files[file]


def check_official_archive(
    archive: Mapping[str, Any], source: Mapping[str, Any], path: Path
) -> None:
    """Refuse a download with a wrong MD5, since a cache may supply any file."""
    _, file, known = find_official_archive(archive, source, str(path))
    if "md5" in known and md5_of(path) != known["md5"]:
        raise VitscopeError(
            f"{path} is not the official archive {file}, or is damaged: delete it, and if "
            f"it is a link what it leads to, and run again."
        )


def download_official_archive(
    archive: Mapping[str, Any], source: Mapping[str, Any], path: Path, *, label: str, say: Say
) -> None:
    url, _, known = find_official_archive(archive, source, label)
    fetch(url, path, label=label, said_by="the publisher", say=say, **known)


def _archive_size_error() -> ValueError:
    return ValueError(f"it holds more than {LARGEST_ARCHIVE} bytes, as no official one does")


class _BoundedGzip(gzip.GzipFile):
    """A gzip file that fails once it expands beyond the size of any official archive."""

    def _check_end(self, end: int) -> None:
        if end > LARGEST_ARCHIVE:
            raise _archive_size_error()

    def read(self, size: int | None = -1) -> bytes:
        # A missing or negative size requests everything.
        wanted = LARGEST_ARCHIVE + 1 if size is None or size < 0 else size
        self._check_end(self.tell() + wanted)
        return super().read(wanted)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check_end(offset)
        return super().seek(offset, whence)


@contextmanager
def opened_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar archive; while it is open, report errors from reading it in one sentence."""
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        opened = _BoundedGzip(path) if compressed else path.open("rb")
        with opened, tarfile.open(fileobj=opened, mode="r:") as tar:
            yield tar
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise VitscopeError(
            f"{path} cannot be read as a tar archive ({reason}): get it again or correct the path."
        ) from error


def checked_members(tar: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """Yield an archive's members; refuse links, sparse files, paths outside it, and large sizes."""
    total = 0
    for member in tar:
        inside = PurePosixPath(member.name)
        # The holes of a sparse file take no space in an archive, but fill memory with zeros.
        plain = (member.isfile() or member.isdir()) and not member.issparse()
        if inside.is_absolute() or ".." in inside.parts or not plain:
            raise VitscopeError(
                f"{path} holds {quoted(member.name)}, which is a link, has holes or leaves the "
                f"folder of the archive: do not use it, and get the official archive."
            )
        if not 0 <= member.size <= LARGEST_MEMBER:
            raise VitscopeError(
                f"{path} holds {quoted(member.name)} of {member.size} bytes, more than any "
                f"official archive: do not use it, and get the official archive."
            )
        total += member.size
        if total > LARGEST_ARCHIVE:
            raise _archive_size_error()
        yield member


def read_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return b"" if file is None else file.read()
