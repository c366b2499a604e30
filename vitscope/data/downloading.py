"""Download the official archive of a data set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.data.archives import find_official
from vitscope.progress import Say
from vitscope.web.downloads import fetch


def download(
    archive: Mapping[str, Any], source: Mapping[str, Any], path: Path, *, label: str, say: Say
) -> None:
    """Download an official archive to `path`, from the `url` of the source if it names one."""
    wanted = find_official(archive, source, label)
    fetch(
        wanted.url,
        path,
        label=label,
        md5=wanted.md5,
        size=wanted.size,
        said_by="the publisher",
        say=say,
    )
