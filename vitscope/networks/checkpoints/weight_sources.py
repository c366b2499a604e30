"""Where the weights of a model come from: the `checkpoint` entry of a study.

A bundled file and a path are on this machine; a URL and a tag of timm's hub are downloaded; and a
function of the user's may return a network with its weights.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, nearest, not_there
from vitscope.web import lockfile, redact

PLACES = ("bundled", "path", "url", "timm", "made")
HUB = "https://huggingface.co"


def file_values(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an entry that decide which file it is, and not what is read of it."""
    return {key: checkpoint[key] for key in (*PLACES, "sha256") if key in checkpoint}


def _place(checkpoint: Mapping[str, Any]) -> str:
    """Return which of the places an entry names."""
    named = [place for place in PLACES if place in checkpoint]
    if len(named) != 1:
        raise VitscopeError(
            f"A checkpoint names exactly one of {', '.join(PLACES)}, and this one names "
            f"{' and '.join(named) or 'none'}."
        )
    return named[0]


def local_file(where: str, checkpoint: Mapping[str, Any], root: Path, study: Path) -> Path | None:
    """Return the file of a checkpoint on this machine; `root` is where bundled ones start.

    `where` is the place of the entry in the file of the study.
    """
    place = _place(checkpoint)
    if place not in ("bundled", "path"):
        return None
    named = Path(checkpoint[place])
    path = root / named if place == "bundled" else named.expanduser()
    if not path.is_file():
        raise not_there(f"{where}.{place}", "file", path, study)
    return path


def describe_source(checkpoint: Mapping[str, Any]) -> str:
    """Say where a checkpoint comes from, without folders of this machine and without secrets."""
    place = _place(checkpoint)
    if place == "made":
        return "made by the function of its network"
    named = str(checkpoint[place])
    if place == "url":
        return redact(named)
    return f"timm: {named}" if place == "timm" else Path(named).name if place == "path" else named


def address(checkpoint: Mapping[str, Any]) -> str:
    """Return the web address of a checkpoint that has to be downloaded."""
    place = _place(checkpoint)
    return _hub_address(checkpoint["timm"]) if place == "timm" else str(checkpoint["url"])


def _hub_address(tag: str) -> str:
    """Return where timm keeps the weights of a pretrained tag."""
    # Imported here: a study that needs no weights of timm's should not wait for it.
    from vitscope.networks.building.timm_import import import_timm

    timm = import_timm()
    if tag not in timm.list_pretrained():
        raise VitscopeError(
            f"timm has no pretrained weights '{tag}': give a model and a tag, such as "
            f"resnet50.a1_in1k.{nearest(tag, timm.list_pretrained())}"
        )
    settings = timm.models.get_pretrained_cfg(tag)
    if not settings.hf_hub_id:
        return str(settings.url)
    repository, _, revision = settings.hf_hub_id.partition("@")
    endpoint = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    name = settings.hf_hub_filename or "model.safetensors"
    return f"{endpoint}/{repository}/resolve/{revision or 'main'}/{name}"


def confirm(checkpoint: Mapping[str, Any], path: Path, lock: Path, *, label: str) -> str | None:
    """Return the SHA-256 that a checkpoint must have, if anything says.

    Of a download without one of its own, the lock file does.
    """
    if "sha256" in checkpoint or _place(checkpoint) in ("bundled", "path"):
        return checkpoint.get("sha256")
    return lockfile.confirm({"url": address(checkpoint)}, path, lock, label=label)


def download(checkpoint: Mapping[str, Any], path: Path, lock: Path, **options: Any) -> None:
    """Download a checkpoint to `path`, as `lockfile.download` does."""
    lockfile.download({**checkpoint, "url": address(checkpoint)}, path, lock, **options)
