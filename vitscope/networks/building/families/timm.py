"""Any network of timm, by its name."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.networks.building.family import WantedNetwork

if TYPE_CHECKING:
    from torch import nn


ARCH = {
    "type": "object",
    "properties": {"name": ("text", "One of timm's models, such as `efficientnet_b0`.")},
    "required": ["name"],
    # Data and checkpoint determine these keywords; some would make timm read other files or URLs.
    "propertyNames": {
        "title": "keywords of the model, which say neither data nor weights",
        "not": {
            "pattern": "^(num_classes|img_size|in_chans|pretrained.*|checkpoint_path|cache_dir"
            "|features_only|scriptable|exportable|no_jit|device|dtype)$"
        },
    },
    "additionalProperties": {"description": "Any keyword of the model."},
}
PREPARED_BY = "vitscope.networks.building.families.timm"


def network(wanted: WantedNetwork) -> "nn.Module":
    """Build a model of timm; pass the image size to models that take one."""
    from vitscope.networks.building.timm_import import import_timm

    timm = import_timm()
    options = prepare(wanted.arch, Path(), "arch")
    options |= {"num_classes": wanted.classes, "in_chans": wanted.channels}
    model: nn.Module
    try:
        model = timm.create_model(options.pop("name"), img_size=wanted.image_size, **options)
    except TypeError as error:
        if "img_size" not in str(error):
            raise
        model = timm.create_model(wanted.arch["name"], **options)
    return model


def prepare(arch: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    name = arch["name"]
    model, dot, _ = name.partition(".")
    tagged = not dot or any(f"'{name}'" in source for source in _model_sources())
    if model in registered_models() and tagged:
        return {**arch}
    # Ask timm itself, which also knows former names.
    from vitscope.networks.building.timm_import import import_timm

    timm = import_timm()
    if not timm.is_model(model):
        raise VitscopeError(
            f"{where}.name: timm has no model {quoted(name)}.{nearest(name, timm.list_models())}"
        )
    there = [each for each in timm.list_pretrained() if each.partition(".")[0] == model]
    if dot and name not in there:
        raise VitscopeError(
            f"{where}.name: timm has no weights {quoted(name)}: leave out what is behind the dot, "
            f"or give one of {', '.join(there) or 'none'}.{nearest(name, there)}"
        )
    return {**arch}


@cache
def _model_sources() -> tuple[str, ...]:
    spec = find_spec("timm")
    folders = spec.submodule_search_locations if spec else None
    files = [file for folder in folders or () for file in Path(folder, "models").glob("*.py")]
    return tuple(file.read_text(encoding="utf-8") for file in files)


@cache
def registered_models() -> frozenset[str]:
    declaration = re.compile(r"^@register_model\s+def (\w+)\(", re.MULTILINE)
    return frozenset(name for source in _model_sources() for name in declaration.findall(source))
