"""Where the weights of a model come from: the `checkpoint` entry of a study."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, nearest, not_there
from vitscope.files.whole import copy_file
from vitscope.web import lockfile, redact
from vitscope.web.hub import WEIGHTS, OnHub

PLACES = ("bundled", "path", "url", "timm", "hf", "made")


def _weight_source_key(checkpoint: Mapping[str, Any]) -> str:
    named = [place for place in PLACES if place in checkpoint]
    if len(named) != 1:
        raise VitscopeError(
            f"A checkpoint names exactly one of {', '.join(PLACES)}, and this one names "
            f"{' and '.join(named) or 'none'}."
        )
    return named[0]


def local_file(where: str, checkpoint: Mapping[str, Any], root: Path, study: Path) -> Path | None:
    """Return a local checkpoint's path, None for others; bundled paths are relative to `root`."""
    place = _weight_source_key(checkpoint)
    if place not in ("bundled", "path"):
        return None
    named = Path(checkpoint[place])
    path = root / named if place == "bundled" else named.expanduser()
    if not path.is_file():
        raise not_there(f"{where}.{place}", "file", path, study)
    return path


def describe_source(checkpoint: Mapping[str, Any]) -> str:
    """Say where a checkpoint comes from, without local folders and without secrets."""
    place = _weight_source_key(checkpoint)
    if place == "made":
        return "made by the function of its network, untrained unless it loads some"
    named = str(checkpoint[place])
    if place == "url":
        return redact(named)
    if place in ("timm", "hf"):
        return f"{place}: {named}"
    return Path(named).name if place == "path" else named


def address(checkpoint: Mapping[str, Any]) -> str:
    place = _locate_weight_download(checkpoint)
    return place if isinstance(place, str) else place.address


def _locate_weight_download(checkpoint: Mapping[str, Any]) -> str | OnHub:
    place = _weight_source_key(checkpoint)
    if place == "hf":
        return OnHub(checkpoint["hf"])
    if place == "url":
        return str(checkpoint["url"])
    # Import here, so that studies without weights of timm do not wait for the import.
    from vitscope.networks.building.timm_import import import_timm

    timm, tag = import_timm(), checkpoint["timm"]
    if tag not in timm.list_pretrained():
        raise VitscopeError(
            f"timm has no pretrained weights '{tag}': give a model and a tag, such as "
            f"resnet50.a1_in1k.{nearest(tag, timm.list_pretrained())}"
        )
    settings = timm.models.get_pretrained_cfg(tag)
    if not settings.hf_hub_id:
        return str(settings.url)
    return OnHub(settings.hf_hub_id, settings.hf_hub_filename or WEIGHTS)


def confirm(checkpoint: Mapping[str, Any], path: Path, lock: Path, *, label: str) -> str | None:
    """Return the SHA-256 that the study states, or None for a local file without one.

    If the study states none for a download, check the download by the lock file, and return its
    SHA-256.
    """
    if "sha256" in checkpoint or _weight_source_key(checkpoint) in ("bundled", "path"):
        return checkpoint.get("sha256")
    return lockfile.confirm_by_lock({"url": address(checkpoint)}, path, lock, label=label)


def download_checkpoint(
    checkpoint: Mapping[str, Any], path: Path, lock: Path, *, label: str, **options: Any
) -> None:
    """Download a checkpoint to `path`, and record its SHA-256 in the lock file."""
    place = _locate_weight_download(checkpoint)
    if isinstance(place, str):
        lockfile.download_with_lock(
            {**checkpoint, "url": place}, path, lock, label=label, **options
        )
        return
    copy_file(place.fetch(label), path)
    try:
        lockfile.confirm_by_lock({**checkpoint, "url": place.address}, path, lock, label=label)
    except VitscopeError:
        path.unlink()
        raise
