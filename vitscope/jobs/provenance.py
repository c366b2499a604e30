"""The record of a run: what it takes to make the same results again."""

import json
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from vitscope import __version__
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.measures import registry
from vitscope.web import redact

PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "numpy",
    "scipy",
    "pillow",
    "pandas",
    "pyarrow",
    "matplotlib",
    "snakemake",
)


class _Dumper(yaml.SafeDumper):
    """Writes shared settings in full for each model that has them, not as references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _git_commit(root: str) -> str | None:
    command = ["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _without_secrets(settings: Any) -> Any:
    if isinstance(settings, Mapping):
        return {
            key: redact(value) if key == "url" else _without_secrets(value)
            for key, value in settings.items()
        }
    return settings


def _with_numbered_classes(facts: Mapping[str, str]) -> dict[str, Any]:
    names = enumerate(json.loads(facts.get("classes", "[]")))
    named = {number: name for number, name in names if name != str(number)}
    return {**facts, **({"classes": named} if named else {})}


def run_record(
    name: str,
    settings: Mapping[str, Any],
    checkpoints: Iterable[str],
    data: Iterable[str],
    tables: Iterable[str],
    root: str,
) -> str:
    """Return the record of a study's run as YAML; the study's settings include the seeds."""
    record = {
        "vitscope": __version__,
        "commit": _git_commit(root),
        "python": platform.python_version(),
        "packages": {
            **{package: _installed_version(package) for package in PACKAGES},
            **registry.installed().versions,
        },
        "checkpoints": {
            Path(path).stem: {"sha256": sha256_of(path), **TensorFile(path).metadata}
            for path in checkpoints
        },
        "data": {
            f"{Path(path).parent.name}/{Path(path).stem}": {
                "sha256": sha256_of(path),
                **_with_numbered_classes(TensorFile(path).metadata),
            }
            for path in data
        },
        "tables": {Path(path).stem: {"sha256": sha256_of(path)} for path in tables},
        "study": {"name": name, **_without_secrets(settings)},
    }
    return yaml.dump(record, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
