"""Swin transformers of timm, by name or by their dimensions."""

from vitscope.networks.building.families._parts import timm_builder

ARCH = {
    "properties": {
        "name": ("text", "One of timm's Swins, such as `swin_tiny_patch4_window7_224`."),
        "patch_size": ("count", "Side of a patch, in pixels."),
        "window_size": ("count", "Side of the windows of attention, in tokens."),
        "embed_dim": ("count", "Channels of the first stage; each stage doubles them."),
        "depths": ("blocks of stages", "Blocks of each stage."),
        "num_heads": ("counts", "Heads of an MSA, by stage."),
        "mlp_ratio": ("ratio", "Hidden over outer width of the MLPs; 4 if left out."),
        "qkv_bias": ("flag", "Whether queries, keys and values have a bias; true if left out."),
        "drop_path_rate": (
            "share",
            "Stochastic depth in training, of the last block; 0.1 if left out.",
        ),
    },
    "oneOf": [
        {"required": ["name"]},
        {"required": ["patch_size", "window_size", "embed_dim", "depths", "num_heads"]},
    ],
}

network = timm_builder("swin_transformer", "SwinTransformer")
