"""Networks of other libraries, small and with random weights, from which a seed draws.

What is not installed is left out, and counted.
"""

import importlib
import importlib.util
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.networks.building.timm_import import declare_torchvision_operators, import_timm

CLASSES, IMAGES = 10, 6
# A network of timm with more parameters takes too long.
MOST_PARAMETERS = 32_000_000
# What names of small ones have in them.
SMALL_NAMES = (
    *("tiny", "nano", "atto", "pico", "femto", "zepto", "test", "xx", "_xs", "micro", "small"),
    *("resnet10", "resnet14", "resnet18", "_t0", "_t1", "_s0", "_m0", "_m1", "_b0", "_002", "_0"),
)


@dataclass(frozen=True)
class Listed:
    """A network of the list: its name, the side of its images, and how it is built.

    The side is 0 where the network alone knows it: then `build` returns both.
    """

    name: str
    side: int
    build: Callable[[], Any]


class Logits(nn.Module):
    """A network whose logits are of one size, whatever it returns: a map is averaged over places.

    The numbers by which they are brought there are constants, so that each class is found.
    """

    def __init__(self, network: nn.Module, images: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))
        with torch.no_grad():
            logits = self(images)
        self.mean, self.scale = logits.mean(0), 1 / (logits.std(0) + 1e-6)

    def forward(self, images: Tensor) -> Tensor:
        result = self.network(images)
        for name in ("logits", "pooler_output", "last_hidden_state", "feature_maps"):
            if getattr(result, name, None) is not None:
                result = getattr(result, name)
                break
        while not isinstance(result, Tensor):
            result = next(iter(result.values())) if isinstance(result, dict) else result[0]
        if result.ndim == 4:
            result = result.mean((2, 3))
        elif result.ndim == 3:
            result = result.mean(1)
        return (result - self.mean) * self.scale


def built(listed: Listed, seed: int) -> tuple[nn.Module, Tensor]:
    """Return a network with weights by which its branches matter, and images."""
    torch.manual_seed(seed)
    network, side = (listed.build(), listed.side) if listed.side else listed.build()
    images = torch.randn(IMAGES, 3, side, side)
    network.eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim < 2:
                # Scales of layers and gains that start at 0 or 1e-5, too.
                parameter.add_(0.2 * torch.randn_like(parameter))
            elif parameter.std() < 1e-3:
                parameter.normal_(0, 0.05)
        norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        for norm in norms:
            norm.momentum = None
            norm.train()
        if norms:
            network(images)
        network.eval()
        return Logits(network, images).eval(), images


def _of_timm(names: list[str]) -> tuple[nn.Module, int]:
    """Return the first network of a module that has few parameters, and the side of its images."""
    timm = import_timm()
    for name in names:
        with torch.device("meta"):
            network = timm.create_model(name)
        if sum(each.numel() for each in network.parameters()) < MOST_PARAMETERS:
            side, options = _smallest_size(name, network.pretrained_cfg["input_size"][1])
            print(f"    {name}, {side} pixels", flush=True)
            return timm.create_model(name, num_classes=CLASSES, **options), side
    raise ValueError(f"none of {', '.join(names)} is small")


def _smallest_size(name: str, default: int) -> tuple[int, dict[str, int]]:
    """Return the smallest side of images that a network takes, and the options that it needs."""
    for side, options in ((64, {}), *((side, {"img_size": side}) for side in (64, 96, 128))):
        try:
            with torch.device("meta"):
                small = import_timm().create_model(name, num_classes=CLASSES, **options)
                small.eval()(torch.zeros(2, 3, side, side))
        except Exception:
            continue
        return side, options
    return default, {}


def timm_networks(chance: random.Random) -> Iterator[Listed]:
    """Yield a network of each module of timm: drawn, or another if it is large."""
    registry = import_timm("timm.models._registry")
    of_module: dict[str, list[str]] = {}
    for name in import_timm().list_models():
        of_module.setdefault(registry._model_to_module[name], []).append(name)
    for module, names in of_module.items():
        small = [name for name in names if any(hint in name for hint in SMALL_NAMES)] or names
        drawn = chance.sample(small, min(4, len(small)))
        yield Listed(f"timm {module}", 0, partial(_of_timm, drawn))


def _of_transformers(model: str, config: str, options: dict[str, Any]) -> nn.Module:
    import_timm()
    library = importlib.import_module("transformers")
    torch.manual_seed(0)
    network: nn.Module = getattr(library, model)(getattr(library, config)(**options))
    return network


PLAIN = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
    "num_labels": CLASSES,
}
TWO = {"num_labels": CLASSES, "image_size": 32, "patch_size": 4, "num_channels": 3}
SWIN = {**TWO, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
CONVS = {"num_labels": CLASSES, "hidden_sizes": [16, 32, 48, 64], "depths": [2, 2, 2, 2]}
PYRAMID = {
    "num_labels": CLASSES,
    "image_size": 64,
    "depths": [2, 2, 2, 2],
    "hidden_sizes": [16, 32, 48, 64],
    "num_attention_heads": [1, 2, 3, 4],
}
# By the name of its classes: the ending of the network's class, and settings.
TRANSFORMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "ViT": ("ForImageClassification", PLAIN),
    "DeiT": ("ForImageClassification", PLAIN),
    "Beit": ("ForImageClassification", {**PLAIN, "use_relative_position_bias": True}),
    "Data2VecVision": ("ForImageClassification", PLAIN),
    "Dinov2": ("ForImageClassification", PLAIN),
    "Dinov2WithRegisters": ("ForImageClassification", PLAIN),
    "DINOv3ViT": ("Model", PLAIN),
    "DINOv3ConvNext": ("Model", CONVS),
    "IJepa": ("ForImageClassification", PLAIN),
    "ViTMSN": ("ForImageClassification", PLAIN),
    "ViTMAE": ("Model", {**PLAIN, "mask_ratio": 0.0}),
    "CLIPVision": ("Model", PLAIN),
    "SiglipVision": ("Model", PLAIN),
    "Aimv2Vision": ("Model", PLAIN),
    "InternVLVision": ("Model", {**PLAIN, "image_size": [32, 32], "patch_size": [8, 8]}),
    "AltCLIPVision": ("Model", PLAIN),
    "ChineseCLIPVision": ("Model", PLAIN),
    "Blip2Vision": ("Model", PLAIN),
    "BlipVision": ("Model", PLAIN),
    "GroupViTVision": ("Model", {"hidden_size": 32, "depths": [2, 2, 2], "image_size": 32}),
    "MetaClip2Vision": ("Model", PLAIN),
    "Owlv2Vision": ("Model", PLAIN),
    "XCLIPVision": ("Model", PLAIN),
    "Swin": ("ForImageClassification", SWIN),
    "Swinv2": ("ForImageClassification", SWIN),
    "DonutSwin": ("Model", SWIN),
    "FocalNet": ("ForImageClassification", {**TWO, "embed_dim": 16, "depths": [2, 2]}),
    "Hiera": (
        "ForImageClassification",
        {**TWO, "image_size": [64, 64], "patch_size": [7, 7], "embed_dim": 16, "depths": [1, 2]}
        | {"num_heads": [1, 2], "embed_dim_multiplier": 2.0, "num_query_pool": 1},
    ),
    "Segformer": (
        "ForImageClassification",
        {**PYRAMID, "decoder_hidden_size": 32},
    ),
    "Pvt": ("ForImageClassification", PYRAMID),
    "PvtV2": ("ForImageClassification", PYRAMID),
    "PoolFormer": ("ForImageClassification", CONVS),
    "SwiftFormer": (
        "ForImageClassification",
        {"num_labels": CLASSES, "depths": [2, 2, 2, 2], "embed_dims": [16, 32, 48, 64]},
    ),
    "ResNet": ("ForImageClassification", {**CONVS, "embedding_size": 16, "layer_type": "basic"}),
    "RegNet": ("ForImageClassification", {**CONVS, "embedding_size": 16, "groups_width": 8}),
    "ConvNext": ("ForImageClassification", CONVS),
    "ConvNextV2": ("ForImageClassification", CONVS),
    "Van": ("ForImageClassification", CONVS),
    "Bit": ("ForImageClassification", {**CONVS, "embedding_size": 16, "num_groups": 8}),
    "MobileNetV1": ("ForImageClassification", {"num_labels": CLASSES, "depth_multiplier": 0.25}),
    "MobileNetV2": ("ForImageClassification", {"num_labels": CLASSES, "depth_multiplier": 0.25}),
    "MobileViT": (
        "ForImageClassification",
        {"num_labels": CLASSES, "image_size": 64, "hidden_sizes": [32, 48, 64]},
    ),
    "MobileViTV2": ("ForImageClassification", {"num_labels": CLASSES, "width_multiplier": 0.5}),
    "EfficientNet": (
        "ForImageClassification",
        {"num_labels": CLASSES, "width_coefficient": 0.25, "depth_coefficient": 0.5}
        | {"hidden_dim": 320, "image_size": 64},
    ),
    "Levit": (
        "ForImageClassification",
        {"num_labels": CLASSES, "image_size": 64, "hidden_sizes": [32, 48, 64]}
        | {"depths": [2, 2, 2], "num_attention_heads": [2, 3, 4], "key_dim": [8, 8, 8]},
    ),
    "Cvt": (
        "ForImageClassification",
        {"num_labels": CLASSES, "embed_dim": [16, 32, 48], "num_heads": [1, 2, 3]}
        | {"depth": [1, 2, 2]},
    ),
    "TextNet": ("ForImageClassification", {"num_labels": CLASSES, "hidden_sizes": [8] * 5}),
    "HGNetV2": ("ForImageClassification", {"num_labels": CLASSES}),
    "ViTDet": ("Model", {**PLAIN, "num_channels": 3, "mlp_ratio": 2}),
    "YolosViT": ("Model", PLAIN),
    "VivitVision": ("Model", PLAIN),
    "DPTViT": ("Model", PLAIN),
    "GLPN": ("Model", PYRAMID),
}


def transformers_networks() -> Iterator[Listed]:
    declare_torchvision_operators()
    library = importlib.import_module("transformers")
    for name, (ending, options) in TRANSFORMERS.items():
        if hasattr(library, name + ending) and hasattr(library, f"{name}Config"):
            side = options.get("image_size", 64)
            side = side if isinstance(side, int) else side[0]
            build = partial(_of_transformers, name + ending, f"{name}Config", options)
            yield Listed(f"transformers {name}{ending}", side, build)


TORCHVISION = (
    *("resnet18", "resnet34", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"),
    *("shufflenet_v2_x0_5", "squeezenet1_1", "efficientnet_b0", "mnasnet0_5", "regnet_y_400mf"),
    *("regnet_x_400mf", "densenet121", "googlenet"),
)


def _of_torchvision(kind: str, *args: Any, **options: Any) -> nn.Module:
    declare_torchvision_operators()
    models = importlib.import_module("torchvision.models")
    for part in kind.split("."):
        models = getattr(models, part)
    network: nn.Module = models(*args, **options, num_classes=CLASSES)  # type: ignore[operator]
    return network


def _convnext() -> nn.Module:
    declare_torchvision_operators()
    kinds = importlib.import_module("torchvision.models.convnext")
    return kinds.ConvNeXt(
        [kinds.CNBlockConfig(16, 32, 2), kinds.CNBlockConfig(32, None, 3)], num_classes=CLASSES
    )


def torchvision_networks() -> Iterator[Listed]:
    for name in TORCHVISION:
        yield Listed(f"torchvision {name}", 64, partial(_of_torchvision, name))
    yield Listed("torchvision convnext", 64, _convnext)
    vit = partial(_of_torchvision, "VisionTransformer", 32, 8, 3, 2, 32, 48)
    yield Listed("torchvision vit", 32, vit)
    for version in ("", "_v2"):
        block = {"block": None}
        swin = partial(_swin, version, block)
        yield Listed(f"torchvision swin{version}", 64, swin)
    maxvit = partial(
        _of_torchvision, "MaxVit", (64, 64), 16, 2, [16, 32], [1, 1], 16, norm_layer=None
    )
    yield Listed("torchvision maxvit", 64, maxvit)
    segment = partial(_of_torchvision, "segmentation.lraspp_mobilenet_v3_large")
    yield Listed("torchvision lraspp", 64, segment)


def _swin(version: str, _: Any) -> nn.Module:
    declare_torchvision_operators()
    kinds = importlib.import_module("torchvision.models.swin_transformer")
    options: dict[str, Any] = {"num_classes": CLASSES}
    if version:
        options |= {"block": kinds.SwinTransformerBlockV2, "downsample_layer": kinds.PatchMergingV2}
    return kinds.SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], **options)


VIT = {"image_size": 32, "patch_size": 8, "num_classes": CLASSES, "dim": 32, "depth": 3}
VIT |= {"heads": 2, "mlp_dim": 48}
PLAIN_OF_VIT_PYTORCH = (
    *("vit ViT", "simple_vit SimpleViT", "deepvit DeepViT", "rvt RvT", "parallel_vit ViT:2"),
    *("simple_vit_with_qk_norm SimpleViT", "simple_vit_with_fft SimpleViT:fft"),
    *("simple_vit_with_register_tokens SimpleViT", "simple_vit_with_value_residual SimpleViT"),
    *("simple_vit_with_patch_dropout SimpleViT", "simple_flash_attn_vit SimpleViT"),
    *("simple_vit_with_hyper_connections SimpleViT:hyper", "simple_uvit SimpleUViT:even"),
    *("normalized_vit nViT", "vit_for_small_dataset ViT", "local_vit LocalViT", "vit_5 ViT5"),
    *("vit_with_decorr ViT", "vit_with_keel_post_ln ViT", "simple_vit_attn_residual SimpleViT"),
    *("simple_vit_orthog_residual_update SimpleViT", "simple_vit_with_sparse_gating SimpleViT"),
    *("attn_residual_with_dca_simple_vit SimpleViT", "learnable_memory_vit ViT"),
    *(
        "vit_nd_rotary ViTND:nd",
        "vit_nd ViTND:nd",
        "vit_nd_pope ViTND:nd",
        "jumbo_vit JumboViT:jumbo",
    ),
    *("es_vit ViT", "jet_vit ViT", "looped_vit LoopedViT", "vit_detpool ViT", "ats_vit ViT"),
    *(
        "simple_vit_with_relative_proj_pos_bias SimpleViT",
        "simple_vit_with_specialized_cls SimpleViT",
    ),
)
MORE_OPTIONS: dict[str, dict[str, Any]] = {
    "2": {"num_parallel_branches": 2},
    "fft": {"freq_patch_size": 8},
    "hyper": {"num_residual_streams": 2},
    "even": {"depth": 4},
    "nd": {"ndim": 2, "input_shape": 32, "image_size": None, "dim_head": 16},
    "jumbo": {"num_cls_tokens": 1, "jumbo_cls_k": 2, "jumbo_ff_mult": 2},
}
ODD_OF_VIT_PYTORCH: dict[str, tuple[int, dict[str, Any]]] = {
    "cait CaiT": (32, {**VIT, "cls_depth": 1}),
    "cct CCT": (
        32,
        {"img_size": 32, "embedding_dim": 32, "num_layers": 2, "num_heads": 2, "mlp_ratio": 2.0}
        | {"num_classes": CLASSES, "n_conv_layers": 2, "positional_embedding": "sine"},
    ),
    "pit PiT": (32, {**VIT, "image_size": 32, "patch_size": 8, "depth": (1, 2)}),
    "levit LeViT": (
        64,
        {"image_size": 64, "num_classes": CLASSES, "dim": (32, 48), "depth": 2, "heads": (2, 3)}
        | {"mlp_mult": 2, "stages": 2, "dim_key": 8, "dim_value": 16},
    ),
    "twins_svt TwinsSVT": (
        64,
        {"num_classes": CLASSES, **{f"s{i}_emb_dim": 16 * i for i in range(1, 5)}}
        | {f"s{i}_depth": 1 for i in range(1, 5)}
        | {"s1_local_patch_size": 4, "s2_local_patch_size": 4}
        | {
            "s3_local_patch_size": 2,
            "s4_local_patch_size": 2,
            "s1_global_k": 4,
            "s2_global_k": 2,
            "s3_global_k": 1,
            "s4_global_k": 1,
        },
    ),
    "max_vit MaxViT": (
        64,
        {"num_classes": CLASSES, "dim": 16, "depth": (1, 1), "dim_head": 8, "window_size": 4},
    ),
    "mobile_vit MobileViT": (
        64,
        {"image_size": (64, 64), "dims": [16, 20, 24], "num_classes": CLASSES}
        | {"channels": [8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 48]},
    ),
    "nest NesT": (
        64,
        {"image_size": 64, "patch_size": 4, "dim": 16, "heads": 2, "num_hierarchies": 2}
        | {"block_repeats": (1, 2), "num_classes": CLASSES},
    ),
    "cross_vit CrossViT": (
        64,
        {"image_size": 64, "num_classes": CLASSES, "depth": 1, "sm_dim": 16, "lg_dim": 32},
    ),
    "xcit XCiT": (32, {**VIT, "cls_depth": 1}),
    "crossformer CrossFormer": (
        64,
        {"num_classes": CLASSES, "dim": (16, 16, 32, 32), "depth": (1, 1, 1, 1)}
        | {"global_window_size": (4, 2, 2, 1), "local_window_size": 2},
    ),
    "scalable_vit ScalableViT": (
        64,
        {"num_classes": CLASSES, "dim": 16, "heads": (1, 2), "depth": (1, 1), "window_size": (4, 4)}
        | {"ssa_dim_key": (8, 8), "reduction_factor": (2, 1), "iwsa_dim_key": 8}
        | {"iwsa_dim_value": 8},
    ),
    "sep_vit SepViT": (
        64,
        {"num_classes": CLASSES, "dim": 16, "dim_head": 8, "heads": (1, 2), "depth": (1, 1)}
        | {"window_size": 4},
    ),
    "regionvit RegionViT": (
        64,
        {"dim": (16, 32), "depth": (1, 1), "window_size": 4, "num_classes": CLASSES}
        | {"tokenize_local_3_conv": False, "local_patch_size": 2},
    ),
    "cvt CvT": (
        32,
        {"num_classes": CLASSES, **{f"s{i}_emb_dim": 16 for i in (1, 2, 3)}}
        | {f"s{i}_depth": 1 for i in (1, 2, 3)}
        | {f"s{i}_heads": 1 for i in (1, 2, 3)},
    ),
}


def _of_vit_pytorch(module: str, kind: str, options: dict[str, Any]) -> nn.Module:
    import_timm()
    declare_torchvision_operators()
    network: nn.Module = getattr(importlib.import_module(f"vit_pytorch.{module}"), kind)(**options)
    return network.requires_grad_(False)


def vit_pytorch_networks() -> Iterator[Listed]:
    for text in PLAIN_OF_VIT_PYTORCH:
        where, _, more = text.partition(":")
        module, kind = where.split()
        options = VIT | MORE_OPTIONS.get(more, {})
        options = {name: value for name, value in options.items() if value is not None}
        build = partial(_of_vit_pytorch, module, kind, options)
        yield Listed(f"vit-pytorch {module}", 32, build)
    for where, (side, options) in ODD_OF_VIT_PYTORCH.items():
        module, kind = where.split()
        yield Listed(f"vit-pytorch {module}", side, partial(_of_vit_pytorch, module, kind, options))


X_TRANSFORMERS: tuple[dict[str, Any], ...] = (
    {},
    {"use_rmsnorm": True},
    {"use_simple_rmsnorm": True},
    {"use_scalenorm": True},
    {"sandwich_norm": True},
    {"pre_norm": False},
    {"resi_dual": True},
    {"attn_qk_norm": True},
    {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    {"ff_glu": True, "ff_swish": True, "ff_no_bias": True},
    {"macaron": True},
    {"rotary_pos_emb": True},
    {"alibi_pos_bias": True},
    {"rel_pos_bias": True},
    {"residual_attn": True},
    {"gate_residual": True},
    {"scale_residual": True},
    {"attn_num_mem_kv": 4},
    {"attn_one_kv_head": True},
    {"attn_sparse_topk": 4},
    {"attn_gate_values": True},
    {"attn_on_attn": True},
    {"attn_flash": True},
    {"attn_sigmoid": True},
    {"unet_skips": True, "depth": 4},
    {"add_value_residual": True},
    {"num_residual_streams": 2},
    {"use_layerscale": True},
    {"ff_relu_squared": True},
    {"use_dynamic_tanh": True},
    {"sandwich_coef": 1},
    {"weight_tie_layers": True},
    {"shift_tokens": 1},
    {"attn_head_scale": True},
)


def _of_x_transformers(options: dict[str, Any]) -> nn.Module:
    library = importlib.import_module("x_transformers")
    layers = library.Encoder(**({"dim": 32, "depth": 3, "heads": 2, "attn_dim_head": 16} | options))
    network: nn.Module = library.ViTransformerWrapper(
        image_size=32, patch_size=8, num_classes=CLASSES, attn_layers=layers
    )
    return network


def x_transformers_networks() -> Iterator[Listed]:
    for options in X_TRANSFORMERS:
        name = "x-transformers " + " ".join(f"{key}={value}" for key, value in options.items())
        yield Listed(name, 32, partial(_of_x_transformers, options))


def _of(module: str, kind: str, *args: Any, **options: Any) -> nn.Module:
    declare_torchvision_operators()
    network: nn.Module = getattr(importlib.import_module(module), kind)(*args, **options)
    return network


def other_networks() -> Iterator[Listed]:
    if importlib.util.find_spec("segmentation_models_pytorch"):
        for kind in (
            "Unet",
            "FPN",
            "Linknet",
            "PSPNet",
            "MAnet",
            "PAN",
            "DeepLabV3",
            "UnetPlusPlus",
        ):
            options = {"encoder_name": "resnet18", "encoder_weights": None, "classes": CLASSES}
            build = partial(_of, "segmentation_models_pytorch", kind, **options)
            yield Listed(f"segmentation-models {kind}", 64, build)
    if importlib.util.find_spec("efficientnet_pytorch"):
        from_name = partial(_efficientnet)
        yield Listed("efficientnet_pytorch b0", 64, from_name)


def _efficientnet() -> nn.Module:
    library = importlib.import_module("efficientnet_pytorch")
    network: nn.Module = library.EfficientNet.from_name("efficientnet-b0", num_classes=CLASSES)
    return network


def listed(seed: int) -> list[Listed]:
    """Return all networks of the installed libraries, in an order that the seed draws.

    Every module of timm has one of its networks, which the seed draws, too.
    """
    chance = random.Random(seed)
    found = [*timm_networks(chance), *transformers_networks(), *torchvision_networks()]
    for library, networks in (
        ("vit_pytorch", vit_pytorch_networks),
        ("x_transformers", x_transformers_networks),
    ):
        if importlib.util.find_spec(library):
            found += networks()
    found += other_networks()
    chance.shuffle(found)
    return found
