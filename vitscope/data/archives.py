"""The official archive of a data set: where it is published, and whether a file is that archive.

A source declares it as `archive` of its `SOURCE`: the `url` that is downloaded unless the study
gives another, and the `files` that are official, by name, with their MD5 and size. Where an archive
is packed anew at each download, neither is known: its source checks what it holds.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from vitscope.errors import VitscopeError
from vitscope.files.whole import md5_of
from vitscope.web.redaction import redact


class Official(NamedTuple):
    """An official archive: its address, the name of its file, and what it must be."""

    url: str
    file: str
    md5: str | None = None
    size: int | None = None


def find_official(archive: Mapping[str, Any], source: Mapping[str, Any], label: str) -> Official:
    """Return the official archive that a source of a study asks for."""
    files, url = archive["files"], source.get("url", archive["url"])
    file = PurePosixPath(urlsplit(url).path).name
    if file not in files:
        raise VitscopeError(
            f"{label}: {redact(url)} names none of the official archives {' and '.join(files)}: "
            f"correct `url`, or leave it out."
        )
    return Official(url, file, **files[file])


def confirm(archive: Mapping[str, Any], source: Mapping[str, Any], path: Path) -> None:
    """Refuse a download that is not the official archive: it may come from a cache, unchecked."""
    expected = find_official(archive, source, str(path))
    if expected.md5 is not None and md5_of(path) != expected.md5:
        raise VitscopeError(
            f"{path} is not the official archive {expected.file}, or is damaged: delete it, and if "
            f"it is a link what it leads to, and run again."
        )
