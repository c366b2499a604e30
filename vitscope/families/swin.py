"""Swin transformers of timm, by name or by their dimensions."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from vitscope.families import CutPoint, Family, Layout, StateDict
from vitscope.families._timm import build_timm, rename, sub_blocks
from vitscope.torchvision_ops import import_timm

ARCH = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "patch_size": {"type": "integer", "minimum": 1},
        "window_size": {"type": "integer", "minimum": 1},
        "embed_dim": {"type": "integer", "minimum": 1},
        "depths": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "num_heads": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "mlp_ratio": {"type": "number", "exclusiveMinimum": 0},
        "qkv_bias": {"type": "boolean"},
        "drop_path_rate": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    },
    "oneOf": [
        {"required": ["name"]},
        {"required": ["patch_size", "window_size", "embed_dim", "depths", "num_heads"]},
    ],
}


def network(arch: Mapping[str, Any], num_classes: int, image_size: int) -> nn.Module:
    """Build one of timm's models, or one of the given dimensions."""
    transformer = import_timm("timm.models.swin_transformer").SwinTransformer
    return build_timm(transformer, arch, num_classes=num_classes, img_size=image_size)


def cut_points(model: Any) -> list[CutPoint]:
    """List the embedded patches, every merging, and the stream after every attention and MLP."""
    maps = Layout("nhwc")
    points = [CutPoint("stem", "stem", 0, "layers.0", "input", maps)]
    for stage, layer in enumerate(model.layers, start=1):
        name = f"layers.{stage - 1}"
        if stage > 1:
            merging = f"{name}.downsample"
            points.append(CutPoint(merging, "pool", stage, merging, "output", maps))
        # Between its two branches a block holds the stream as tokens.
        tokens = Layout("nlc", 0, layer.output_resolution)
        for index in range(len(layer.blocks)):
            points += sub_blocks(f"{name}.blocks.{index}", stage, tokens, maps)
    return points


def translate(state_dict: StateDict, model: nn.Module) -> StateDict:
    """Move each merging from the end of a stage to the start of the next, and drop the buffers."""
    kept = {
        key: tensor
        for key, tensor in state_dict.items()
        if not key.endswith((".relative_position_index", ".attn_mask"))
    }
    if "layers.0.downsample.reduction.weight" in kept:
        kept = rename(
            kept,
            r"^layers\.(\d+)\.downsample\.",
            lambda match: f"layers.{int(match[1]) + 1}.downsample.",
        )
    return rename(kept, r"^head\.(weight|bias)$", r"head.fc.\1")


FAMILY = Family(network, cut_points, translate)
