"""Families of networks: how to build a network, and what a module declares (docs/families.md)."""

import ast
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from vitscope.errors import VitscopeError, nearest
from vitscope.image_size import ImageSize
from vitscope.networks.building import families

COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
COUNTS: dict[str, Any] = {"type": "array", "items": COUNT}
# Ten times as many blocks as the deepest networks have.
BLOCKS: dict[str, Any] = COUNT | {"maximum": 10_000}
VALUES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "path": {"type": "string", "minLength": 1},
    "flag": {"type": "boolean"},
    "count": COUNT,
    "counts": COUNTS,
    "counts of four stages": COUNTS | {"minItems": 4, "maxItems": 4},
    "blocks": BLOCKS,
    "blocks of stages": COUNTS | {"items": BLOCKS},
    "blocks of four stages": COUNTS | {"items": BLOCKS, "minItems": 4, "maxItems": 4},
    "ratio": {"type": "number", "exclusiveMinimum": 0},
    "share": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "depth of a ResNet": {"enum": [18, 34, 50, 101, 152]},
    "residual block": {"enum": ["basic", "bottleneck"]},
}
USUAL: dict[str, tuple[str, str]] = {
    "block": ("residual block", "The kind of residual block."),
    "blocks": ("blocks of four stages", "Blocks of each stage."),
    "width": ("count", "Channels within the blocks of the first stage; 64 if left out."),
    "stem": (
        "flag",
        "Begin with a 7x7 convolution of stride 2 and pooling; with a 3x3 one if left out.",
    ),
    "drop_path_rate": ("share", "Stochastic depth in training, of the last block; 0 if left out."),
}


class WantedNetwork(NamedTuple):
    """Describes a network to build: its `arch`, its number of classes, and its input images."""

    arch: Mapping[str, Any]
    classes: int
    image_size: ImageSize
    channels: int


def family_names() -> list[str]:
    modules = pkgutil.iter_modules(families.__path__)
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def module_of(name: str) -> str:
    return f"{families.__name__}.{name}"


def arch_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a family's `arch`, read from its source without running it."""
    schema: dict[str, Any] | None = _read_constant(name, "ARCH")
    if schema is None:
        raise VitscopeError(f"The model family '{name}' has no literal ARCH: add one.")
    keys = schema["properties"].items()
    expanded = {
        key: _expand_arch_key(USUAL[key] if value == "usual" else value) for key, value in keys
    }
    return {"type": "object", "additionalProperties": False, **schema, "properties": expanded}


def _expand_arch_key(key: tuple[str, str] | dict[str, Any]) -> dict[str, Any]:
    return key if isinstance(key, dict) else {"description": key[1]} | VALUES[key[0]]


def prepare_family_arch(
    name: str, arch: Mapping[str, Any], folder: Path, where: str
) -> dict[str, Any]:
    """Run the family's own checks of `arch`, and return `arch` in the form that jobs use."""
    module: str | None = _read_constant(name, "PREPARED_BY")
    if module is None:
        return {**arch}
    found: dict[str, Any] = import_module(module).prepare(arch, folder, where)
    return found


def complete_family_arch(name: str, arch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `arch` with the family's defaults, and with its `depth` replaced by the blocks."""
    depths = _read_constant(name, "DEPTHS") or {}
    published = depths[arch["depth"]] if depths and "depth" in arch else {}
    given = {key: value for key, value in arch.items() if key != "depth" or not depths}
    full = {**(_read_constant(name, "DEFAULTS") or {}), **published, **given}
    return {key: list(each) if isinstance(each, tuple) else each for key, each in full.items()}


@cache
def _read_constant(family: str, name: str) -> Any:
    """Read a constant from a family's source, without running it; None if it is missing."""
    refuse_unknown_family(family)
    spec = find_spec(module_of(family))
    if spec is None or spec.origin is None:
        raise VitscopeError(f"The source of the model family '{family}' cannot be found.")
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and ast.unparse(targets[0]) == name:
            return ast.literal_eval(node.value) if node.value else None
    return None


def refuse_unknown_family(name: str) -> None:
    there = family_names()
    if name not in there:
        raise VitscopeError(
            f"There is no model family '{name}'; there are {', '.join(there)}."
            f"{nearest(name, there)}"
        )
