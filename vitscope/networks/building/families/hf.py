"""A network of Hugging Face, by its repository on the hub or by a folder."""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.family import WantedNetwork
from vitscope.networks.building.own_code import path_in_study, shown
from vitscope.web.hub import OnHub

if TYPE_CHECKING:
    from torch import nn

ARCH = {
    "type": "object",
    "properties": {
        "repository": {
            "description": "A repository of the hub, as `owner/name` or `owner/name@revision`.",
            "type": "string",
            "pattern": r"^[\w-][\w.-]*/[\w-][\w.-]*(@[\w-][\w./-]*)?$(?!\n)",
            "title": "owner/name or owner/name@revision",
        },
        "folder": (
            "path",
            "A folder that `save_pretrained` wrote, relative to the study, absolute, or below `~`.",
        ),
    },
    "oneOf": [{"required": ["repository"]}, {"required": ["folder"]}],
}
# Keys to ignore: dtypes, since weights are measured in float32, and custom code (`auto_map`).
UNUSED = ("dtype", "torch_dtype", "auto_map")
PREPARED_BY = "vitscope.networks.building.families.hf"
WITH_VALUES = True


def prepare(arch: Mapping[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """Return `arch` with the network's configuration added, so that jobs read no other file."""
    key = "folder" if "folder" in arch else "repository"
    name, where = f"config.json of {quoted(arch[key])}", f"{where}.{key}"
    if key == "folder":
        file = path_in_study(folder, arch["folder"]) / "config.json"
    else:
        file = OnHub(arch["repository"], "config.json").fetch(where)
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise VitscopeError(
            f"{where}: {shown(file)} cannot be read ({error.strerror}): give a folder that "
            f"save_pretrained wrote, relative to the study or absolute."
        ) from error
    except ValueError as error:
        raise VitscopeError(
            f"{where}: {name} is no JSON ({error}): give one that transformers wrote."
        ) from error
    if not isinstance(config, dict) or "model_type" not in config:
        raise VitscopeError(
            f"{where}: {name} names no model_type: choose the {key} of a network of transformers."
        )
    return {**arch, "config": config}


def network(wanted: WantedNetwork) -> "nn.Module":
    """Build the classifier that the configuration describes, with the image size given there."""
    from vitscope.networks.building.timm_import import declare_torchvision_operators

    declare_torchvision_operators()
    try:
        transformers = import_module("transformers")
    except ImportError as error:
        raise VitscopeError(
            "arch: networks of the family hf are built by transformers, which is not installed: "
            "run `pip install vitscope[hf]`."
        ) from error
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    said = {key: value for key, value in wanted.arch["config"].items() if key not in UNUSED}
    config = transformers.AutoConfig.for_model(**said)
    config.num_labels = wanted.classes
    classifier = transformers.AutoModelForImageClassification
    model: nn.Module = classifier.from_config(config, trust_remote_code=False)
    return model
