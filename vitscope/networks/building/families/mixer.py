"""MLP-Mixers of timm, by name or by their dimensions."""

from vitscope.networks.building.families._parts import timm_builder

ARCH = {
    "properties": {
        "name": ("text", "One of timm's MLP-Mixers, such as `mixer_b16_224`."),
        "patch_size": ("count", "Side of a patch, in pixels."),
        "num_blocks": ("blocks", "Blocks, each an MLP over tokens and one over channels."),
        "embed_dim": ("count", "Channels of every token."),
        "mlp_ratio": {
            "description": "Hidden over outer width, over tokens and channels; 0.5, 4 if left out.",
            "type": "array",
            "items": {"type": "number", "exclusiveMinimum": 0},
            "minItems": 2,
            "maxItems": 2,
        },
        "drop_path_rate": "usual",
    },
    "oneOf": [{"required": ["name"]}, {"required": ["patch_size", "num_blocks", "embed_dim"]}],
}

network = timm_builder("mlp_mixer", "MlpMixer")
