"""Layouts: what other libraries call the weights of networks that timm has too.

A layout is known by its names alone, and translated to timm's. What a library changes beyond names
(queries, keys and values apart, a scale with two axes more) is changed back; nothing is computed
that its own network would not compute. What timm translates itself is not here.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.checkpoints.entries import StateDict

New = str | Callable[[re.Match[str]], str]


def rename(state_dict: StateDict, pattern: str, new: New) -> StateDict:
    """Replace what matches `pattern` in the keys, of which no two may become the same."""
    renamed: dict[str, str] = {}
    for key in state_dict:
        other = renamed.setdefault(re.sub(pattern, new, key), key)
        if other != key:
            raise VitscopeError(
                f"The checkpoint holds both {quoted(other)} and {quoted(key)}, which are the same "
                f"weights: give the file as it was published."
            )
    return {name: state_dict[key] for name, key in renamed.items()}


def unchanged(state_dict: StateDict) -> StateDict:
    """Return weights as they are."""
    return state_dict


@dataclass(frozen=True)
class WeightLayout:
    """The names of a library for the weights of a kind of network.

    A file is of this layout if every one of `marks` is found in a name. `network` is the class of
    timm that has such weights. Names that match `without` are of no use to it: they are left out.
    `renamed` are substitutions, one after another; `finish` does what is left.
    """

    name: str
    network: str
    marks: tuple[str, ...]
    renamed: tuple[tuple[str, New], ...] = ()
    without: str = "(?!)"
    finish: Callable[[StateDict], StateDict] = unchanged

    def fits(self, names: Iterable[str]) -> bool:
        """Tell whether names belong to this layout."""
        names = list(names)
        return all(any(re.search(mark, name) for name in names) for mark in self.marks)

    def translate(self, weights: StateDict) -> StateDict:
        """Return weights under the names that timm has for them."""
        kept = {n: tensor for n, tensor in weights.items() if not re.search(self.without, n)}
        for pattern, new in self.renamed:
            kept = rename(kept, pattern, new)
        return self.finish(kept)


def find_layout(names: Iterable[str]) -> WeightLayout | None:
    """Return the layout that names are of, if it is known."""
    names = list(names)
    return next((layout for layout in LAYOUTS if layout.fits(names)), None)


def fuse(weights: StateDict, parts: tuple[str, ...], whole: str) -> StateDict:
    """Put weights that timm keeps in one, such as queries, keys and values, one below another."""
    first = re.compile(rf"^(.*\.){parts[0]}\.(weight|bias)$")
    found = dict(weights)
    for match in filter(None, map(first.match, weights)):
        names = [f"{match[1]}{part}.{match[2]}" for part in parts]
        if all(name in found for name in names):
            found[f"{match[1]}{whole}.{match[2]}"] = torch.cat([found.pop(n) for n in names])
    return found


def _with_fused_attention(weights: StateDict) -> StateDict:
    return fuse(weights, ("q", "k", "v"), "qkv")


def _as_dinov2(weights: StateDict) -> StateDict:
    """Fuse what timm fuses; its class token has its position in it where there are registers."""
    found = fuse(_with_fused_attention(weights), ("gate", "up"), "fc1")
    if found.keys() >= {"reg_token", "cls_token", "pos_embed"}:
        found["cls_token"] = found["cls_token"] + found["pos_embed"][:, :1]
        found["pos_embed"] = found["pos_embed"][:, 1:]
    return found


def _with_flat_scales(weights: StateDict) -> StateDict:
    return {n: t.flatten() if n.endswith(".gamma") else t for n, t in weights.items()}


def _stage(match: re.Match[str]) -> str:
    """Name the part of a network whose stages are every second one of its `features`."""
    number = int(match[1])
    stage = (number - 1) // 2
    if number % 2 == 0:
        return f"stages.{stage + 1}.downsample."
    return f"stages.{stage}.blocks.{match[2]}" if match[2] else match[0]


def _next_stage(match: re.Match[str]) -> str:
    """Move what stood at the end of a stage to the start of the next."""
    return f"{match[1]}{int(match[2]) + 1}{match[3]}"


# Transformers 5 calls layers otherwise in memory than in the files that it writes and reads.
_HUGGING_FACE: tuple[tuple[str, New], ...] = (
    (r"\.attention\.(?:attention|self)\.(q)uery\.", r".attn.\1."),
    (r"\.attention\.(?:attention|self)\.(k)ey\.", r".attn.\1."),
    (r"\.attention\.(?:attention|self)\.(v)alue\.", r".attn.\1."),
    (r"\.attention\.([qkv])_proj\.", r".attn.\1."),
    (r"\.attention\.(?:output\.dense|o_proj)\.", ".attn.proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"\.output\.dense\.", ".mlp.fc2."),
    (r"\.layernorm_before\.", ".norm1."),
    (r"\.layernorm_after\.", ".norm2."),
)
_HUGGING_FACE_VIT: tuple[tuple[str, New], ...] = (
    (r"^(?:vit|deit|dinov2(?:_with_registers)?)\.", ""),
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^embeddings\.distillation_token$", "dist_token"),
    (r"^embeddings\.register_tokens$", "reg_token"),
    (r"^embeddings\.position_embeddings$", "pos_embed"),
    (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
    (r"^(?:encoder\.layer|layers)\.(\d+)\.", r"blocks.\1."),
    *_HUGGING_FACE,
    (r"^layernorm\.", "norm."),
    (r"^(?:cls_)?classifier\.", "head."),
    (r"^distillation_classifier\.", "head_dist."),
)
# What learns to fill in images, and what is behind the class token: no part of timm's networks.
_NOT_LOOKED_AT = r"(?:^|\.)(?:embeddings\.mask_token$|pooler\.)"
_SWIN_BUFFERS = r"\.(?:relative_position_index|relative_coords_table|attn_mask)$"
_PATCHES = r"(?:^|\.)embeddings\.patch_embeddings\."

LAYOUTS = (
    WeightLayout(
        name="Hugging Face's DINOv2",
        network="VisionTransformer",
        marks=(_PATCHES + r"projection\.weight$", r"\.layer_scale1\.lambda1$"),
        without=_NOT_LOOKED_AT,
        renamed=(
            *_HUGGING_FACE_VIT,
            (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
            (r"\.mlp\.weights_in\.", ".mlp.fc1."),
            (r"\.mlp\.(gate|up)_proj\.", r".mlp.\1."),
            (r"\.mlp\.(?:weights_out|down_proj)\.", ".mlp.fc2."),
        ),
        finish=_as_dinov2,
    ),
    WeightLayout(
        name="Hugging Face's DeiT",
        network="VisionTransformer",
        marks=(_PATCHES + r"projection\.weight$", r"(?:^|\.)embeddings\.distillation_token$"),
        without=_NOT_LOOKED_AT,
        renamed=_HUGGING_FACE_VIT,
        finish=_with_fused_attention,
    ),
    WeightLayout(
        name="Hugging Face's ViT",
        network="VisionTransformer",
        marks=(
            _PATCHES + r"projection\.weight$",
            r"(?:^|\.)embeddings\.position_embeddings$",
            r"(?:layer|layers)\.0\.layernorm_before\.weight$",
        ),
        without=_NOT_LOOKED_AT,
        renamed=_HUGGING_FACE_VIT,
        finish=_with_fused_attention,
    ),
    WeightLayout(
        name="Hugging Face's Swin",
        network="SwinTransformer",
        marks=(
            _PATCHES + r"projection\.weight$",
            r"(?:^|\.)encoder\.layers\.0\.blocks\.0\.layernorm_before\.weight$",
        ),
        without=rf"{_NOT_LOOKED_AT}|{_SWIN_BUFFERS}",
        renamed=(
            (r"^swin\.", ""),
            (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
            (r"^embeddings\.norm\.", "patch_embed.norm."),
            (
                r"\.attention\.(?:self|relative_position_bias)\.(relative_position_bias_table)$",
                r".attn.\1",
            ),
            *_HUGGING_FACE,
            (r"^encoder\.(layers\.)(\d+)(\.downsample\.)", _next_stage),
            (r"^encoder\.layers\.", "layers."),
            (r"^layernorm\.", "norm."),
            (r"^classifier\.", "head.fc."),
        ),
        finish=_with_fused_attention,
    ),
    WeightLayout(
        name="Hugging Face's ConvNeXt",
        network="ConvNeXt",
        marks=(
            _PATCHES + r"weight$",
            r"(?:^|\.)encoder\.stages\.0\.layers\.0\.dwconv\.weight$",
            r"\.layer_scale_parameter$",
        ),
        renamed=(
            (r"^convnext\.", ""),
            (r"^embeddings\.patch_embeddings\.", "stem.0."),
            (r"^embeddings\.layernorm\.", "stem.1."),
            (r"^layernorm\.", "head.norm."),
            (r"^classifier\.", "head.fc."),
            (r"^encoder\.stages\.(\d+)\.downsampling_layer\.", r"stages.\1.downsample."),
            (r"^encoder\.stages\.(\d+)\.layers\.(\d+)\.", r"stages.\1.blocks.\2."),
            (r"\.layer_scale_parameter$", ".gamma"),
            (r"\.dwconv\.", ".conv_dw."),
            (r"\.layernorm\.", ".norm."),
            (r"\.pwconv(\d)\.", r".mlp.fc\1."),
        ),
    ),
    WeightLayout(
        name="torchvision's ViT",
        network="VisionTransformer",
        marks=(
            r"(?:^|\.)conv_proj\.weight$",
            r"(?:^|\.)encoder\.layers\.encoder_layer_0\.self_attention\.in_proj_weight$",
        ),
        renamed=(
            (r"^class_token$", "cls_token"),
            (r"^conv_proj\.", "patch_embed.proj."),
            (r"^encoder\.pos_embedding$", "pos_embed"),
            (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."),
            (r"\.self_attention\.in_proj_(weight|bias)$", r".attn.qkv.\1"),
            (r"\.self_attention\.out_proj\.", ".attn.proj."),
            (r"\.ln_([12])\.", r".norm\1."),
            # The first files call them by another name than the module that reads these.
            (r"\.mlp\.(?:0|linear_1)\.", ".mlp.fc1."),
            (r"\.mlp\.(?:3|linear_2)\.", ".mlp.fc2."),
            (r"^encoder\.ln\.", "norm."),
            (r"^heads\.head\.", "head."),
        ),
    ),
    WeightLayout(
        name="torchvision's Swin",
        network="SwinTransformer",
        marks=(
            r"(?:^|\.)features\.0\.0\.weight$",
            r"(?:^|\.)features\.1\.0\.attn\.relative_position_bias_table$",
        ),
        without=_SWIN_BUFFERS,
        renamed=(
            (r"^features\.0\.0\.", "patch_embed.proj."),
            (r"^features\.0\.2\.", "patch_embed.norm."),
            (r"^features\.([1-9]\d*)\.(\d+(?=\.(?:norm|attn|mlp)))?", _stage),
            (r"^stages\.", "layers."),
            (r"\.mlp\.0\.", ".mlp.fc1."),
            (r"\.mlp\.3\.", ".mlp.fc2."),
            (r"^head\.", "head.fc."),
        ),
    ),
    WeightLayout(
        name="torchvision's ConvNeXt",
        network="ConvNeXt",
        marks=(
            r"(?:^|\.)features\.0\.0\.weight$",
            r"(?:^|\.)features\.1\.0\.layer_scale$",
        ),
        renamed=(
            (r"^features\.0\.", "stem."),
            (r"^features\.([1-9]\d*)\.(\d+(?=\.(?:block|layer_scale)))?", _stage),
            (r"\.layer_scale$", ".gamma"),
            (r"\.block\.0\.", ".conv_dw."),
            (r"\.block\.2\.", ".norm."),
            (r"\.block\.3\.", ".mlp.fc1."),
            (r"\.block\.5\.", ".mlp.fc2."),
            (r"^classifier\.0\.", "head.norm."),
            (r"^classifier\.2\.", "head.fc."),
        ),
        finish=_with_flat_scales,
    ),
    # The names are the same in both.
    WeightLayout(
        name="a ResNet of torchvision or timm",
        network="ResNet",
        marks=(
            r"(?:^|\.)conv1\.weight$",
            r"(?:^|\.)bn1\.weight$",
            r"(?:^|\.)layer1\.0\.conv1\.weight$",
        ),
    ),
    WeightLayout(
        name="a Swin of an earlier timm",
        network="SwinTransformer",
        marks=(r"(?:^|\.)layers\.0\.downsample\.reduction\.weight$",),
        without=_SWIN_BUFFERS,
        renamed=(
            (r"^(layers\.)(\d+)(\.downsample\.)", _next_stage),
            (r"^head\.(weight|bias)$", r"head.fc.\1"),
        ),
    ),
    WeightLayout(
        name="a PiT of an earlier timm",
        network="PoolingVisionTransformer",
        marks=(r"(?:^|\.)(?:pools\.0|transformers\.0\.pool)\.",),
        renamed=(
            (r"^pools\.(\d+)\.", r"transformers.\1.pool."),
            (r"^(transformers\.)(\d+)(\.pool\.)", _next_stage),
        ),
    ),
)
