"""The names of timm's models, looked up in its sources: to import it takes seconds of every run."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, nearest, quoted


def prepare(arch: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """Refuse a name that timm lacks; `arch` is as jobs take it."""
    name = arch["name"]
    model, dot, _ = name.partition(".")
    tagged = not dot or any(f"'{name}'" in source for source in _sources())
    if model not in declared_names() or not tagged:
        _check(name, where)
    return {**arch}


@cache
def _sources() -> tuple[str, ...]:
    spec = find_spec("timm")
    folders = spec.submodule_search_locations if spec else None
    files = [file for folder in folders or () for file in Path(folder, "models").glob("*.py")]
    return tuple(file.read_text(encoding="utf-8") for file in files)


@cache
def declared_names() -> frozenset[str]:
    """Return the names of the models that the sources declare."""
    declaration = re.compile(r"^@register_model\s+def (\w+)\(", re.MULTILINE)
    return frozenset(name for source in _sources() for name in declaration.findall(source))


def _check(name: str, where: str) -> None:
    """Ask timm itself, which knows former names too, and which are near."""
    # Imported here: most names are found in the sources.
    from vitscope.networks.building.timm_import import import_timm

    timm = import_timm()
    model, dot, _ = name.partition(".")
    if not timm.is_model(model):
        raise VitscopeError(
            f"{where}.name: timm has no model {quoted(name)}.{nearest(name, timm.list_models())}"
        )
    tagged = [each for each in timm.list_pretrained() if each.partition(".")[0] == model]
    if dot and name not in tagged:
        raise VitscopeError(
            f"{where}.name: timm has no weights {quoted(name)}: leave out what is behind the dot, "
            f"or give one of {', '.join(tagged) or 'none'}.{nearest(name, tagged)}"
        )
