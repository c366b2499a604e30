"""Web pages and pointers that servers and clones give in place of a file."""

from pathlib import Path

DISGUISES = {
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"<head": "a web page",
    b"<script": "a web page",
    b"version https://git-lfs.github.com/spec/": "a Git LFS pointer",
}


def disguise_of(path: Path) -> str | None:
    """Return what a file is instead of data, by how it begins; None if it may be data."""
    with path.open("rb") as file:
        start = file.read(512).lstrip().lower()
    return next((name for mark, name in DISGUISES.items() if start.startswith(mark)), None)
