"""Vision transformers: ViT and DeiT of timm, by name or by their dimensions."""

from torch import nn

from vitscope.networks.building.families._parts import build_timm, replace_attention
from vitscope.networks.building.family import WantedNetwork
from vitscope.networks.building.timm_import import import_timm

ARCH = {
    "properties": {
        "name": ("text", "One of timm's ViTs or DeiTs, such as `vit_tiny_patch16_224`."),
        "patch_size": ("count", "Side of a patch, in pixels."),
        "embed_dim": ("count", "Channels of every token."),
        "depth": ("blocks", "Blocks, each an MSA and an MLP."),
        "num_heads": ("count", "Heads of an MSA."),
        "mlp_ratio": ("ratio", "Hidden over outer width of the MLPs; 4 if left out."),
        "qkv_bias": ("flag", "Whether queries, keys and values have a bias; true if left out."),
        "drop_path_rate": "usual",
        "class_token": (
            "flag",
            "Whether a class token is classified; if not, there is none, and the mean of "
            "all tokens is (global average pooling). True if left out, as it must be where "
            "`name` is given.",
        ),
        "attention_window": (
            "count",
            "Side of the window of tokens that a token attends to, with itself in the middle; "
            "of an even side, one more lies below it and to its right. Windows end at the "
            "edges of the grid. The class token attends to all, and all attend to it. "
            "All tokens attend to all if left out, as they must where `name` is given.",
        ),
        "mixing": {
            "description": (
                "What mixes the tokens of a window: `attention`, if left out; `static_key`, "
                "attention to learned keys of positions, which no image changes; `fixed`, learned "
                "weights of pairs of positions; `depthwise`, a convolution of each channel over "
                "positions; `uniform`, their mean."
            ),
            "enum": ["attention", "static_key", "fixed", "depthwise", "uniform"],
        },
    },
    "title": (
        "`attention_window`, `mixing` and `class_token` beside the dimensions of a network, and "
        "not beside its name"
    ),
    "not": {
        "required": ["name"],
        "anyOf": [
            {"required": ["attention_window"]},
            {"required": ["mixing"]},
            {"required": ["class_token"]},
        ],
    },
    "oneOf": [
        {"required": ["name"]},
        {"required": ["patch_size", "embed_dim", "depth", "num_heads"]},
    ],
}


def network(wanted: WantedNetwork) -> nn.Module:
    """Build a ViT by name or by dimensions; replace its attention if `arch` asks for that."""
    transformer = import_timm("timm.models.vision_transformer").VisionTransformer
    arch, own = wanted.arch, ("attention_window", "mixing")
    of_timm = {key: value for key, value in arch.items() if key not in own}
    if not arch.get("class_token", True):
        of_timm["global_pool"] = "avg"
    model = build_timm(transformer, wanted._replace(arch=of_timm), img_size=wanted.image_size)
    mixing = arch.get("mixing", "attention")
    if "attention_window" in arch or mixing != "attention":
        replace_attention(model, arch.get("attention_window"), mixing)
    return model
