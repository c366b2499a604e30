"""ConvNeXts of timm, by name or by their dimensions."""

from vitscope.networks.building.families._parts import timm_builder

ARCH = {
    "properties": {
        "name": ("text", "One of timm's ConvNeXts, such as `convnext_tiny`."),
        "patch_size": ("count", "Side of a patch of the stem, in pixels."),
        "depths": ("blocks of four stages", "Blocks of each stage."),
        "dims": ("counts of four stages", "Channels of each stage."),
        "drop_path_rate": "usual",
    },
    "oneOf": [{"required": ["name"]}, {"required": ["patch_size", "depths", "dims"]}],
}

network = timm_builder("convnext", "ConvNeXt", sized=False)
