"""Any network of timm, by its name.

Keywords of the model may stand beside the name, and change it as they would in timm.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from vitscope.image_size import ImageSize
from vitscope.networks.building.family import Family
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.building.timm_names import prepare

ARCH = {
    "type": "object",
    "properties": {
        "name": ("text", "One of timm's models, such as `efficientnet_b0`."),
    },
    "required": ["name"],
    # The data and the checkpoint say these; some of them would lead to other files and addresses.
    "propertyNames": {
        "title": "keywords of the model, which say neither data nor weights",
        "not": {
            "pattern": "^(num_classes|img_size|in_chans|pretrained.*|checkpoint_path|cache_dir"
            "|features_only|scriptable|exportable|no_jit|device|dtype)$"
        },
    },
    "additionalProperties": {"description": "Any keyword of the model."},
}
PREPARED_BY = "vitscope.networks.building.timm_names"


def network(
    arch: Mapping[str, Any], num_classes: int, image_size: ImageSize, channels: int
) -> nn.Module:
    """Build a model of timm, for images of this size where it depends on that."""
    timm = import_timm()
    options = prepare(arch, Path(), "arch") | {"num_classes": num_classes, "in_chans": channels}
    model: nn.Module
    try:
        model = timm.create_model(options.pop("name"), img_size=image_size, **options)
    except TypeError as error:
        if "img_size" not in str(error):
            raise
        model = timm.create_model(arch["name"], **options)
    return model


FAMILY = Family(network)
