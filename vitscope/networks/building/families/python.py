"""A network of your own, by a function that makes it."""

from torch import nn

from vitscope.errors import VitscopeError
from vitscope.networks.building.family import WantedNetwork
from vitscope.networks.building.networks import unwrap_compiled
from vitscope.networks.building.own_code import OWN_KEYS, call_user_function
from vitscope.networks.building.timm_import import declare_torchvision_operators

ARCH = {
    "type": "object",
    "properties": {
        "file": ("path", "A file of Python, relative to the study, absolute, or below `~`."),
        "module": {
            "description": "A module that lies beside the study or is installed, with dots.",
            "type": "string",
            "pattern": r"^[^\W\d]\w*(\.[^\W\d]\w*)*$(?!\n)",
            "title": "the name of a module, such as models.vit",
        },
        "make": {
            "description": "The function, or class, that is called.",
            "type": "string",
            "pattern": r"^[^\W\d]\w*$(?!\n)",
            "title": "the name of a function",
        },
    },
    "required": ["make"],
    "oneOf": [{"required": ["file"]}, {"required": ["module"]}],
    "propertyNames": {"title": "keywords other than `code`", "not": {"const": "code"}},
    "additionalProperties": {"description": "Any keyword of the function."},
}
PREPARED_BY = "vitscope.networks.building.own_code"
WITH_VALUES = True


def network(wanted: WantedNetwork) -> nn.Module:
    """Call the user's function with its keywords, but without the classes or the image size."""
    declare_torchvision_operators()
    arch = wanted.arch
    keywords = {key: value for key, value in arch.items() if key not in OWN_KEYS}
    made = call_user_function(arch, keywords)
    if not isinstance(made, nn.Module):
        raise VitscopeError(
            f"{arch.get('file', arch.get('module'))}: {arch['make']} returned an object of the "
            f"type {type(made).__name__}, which is no torch.nn.Module: return the network."
        )
    return unwrap_compiled(made)
