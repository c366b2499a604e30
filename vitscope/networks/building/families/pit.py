"""PiT, the pooling-based vision transformer of timm, by name or by its dimensions."""

from vitscope.networks.building.families._parts import timm_builder

ARCH = {
    "properties": {
        "name": ("text", "One of timm's PiTs, such as `pit_ti_224`."),
        "patch_size": ("count", "Side of a patch, in pixels."),
        "stride": ("count", "Distance of patches, in pixels."),
        "base_dims": ("counts", "Channels of a head, by stage."),
        "depth": ("blocks of stages", "Blocks of each stage."),
        "heads": ("counts", "Heads of an MSA, by stage."),
        "mlp_ratio": ("ratio", "Hidden over outer width of the MLPs; 4 if left out."),
        "drop_path_rate": "usual",
    },
    "oneOf": [
        {"required": ["name"]},
        {"required": ["patch_size", "stride", "base_dims", "depth", "heads"]},
    ],
}

network = timm_builder("pit", "PoolingVisionTransformer")
