"""Networks of many kinds, as small as their code allows: of timm, torchvision, torch, one's own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.networks.building.timm_import import import_timm


def timm(name: str, **keywords: Any) -> nn.Module:
    return import_timm().create_model(name, num_classes=5, **keywords)


def torchvision_vit() -> nn.Module:
    module = import_timm("torchvision.models.vision_transformer")
    return module.VisionTransformer(32, 8, 2, 2, 12, 24, num_classes=5)


def torchvision_swin() -> nn.Module:
    module = import_timm("torchvision.models.swin_transformer")
    return module.SwinTransformer([2, 2], 8, [2, 2], [1, 2], [4, 4], num_classes=5)


def torchvision_resnet() -> nn.Module:
    module = import_timm("torchvision.models.resnet")
    return module.ResNet(module.Bottleneck, [2, 1, 1, 1], num_classes=5, width_per_group=8)


class EncoderViT(nn.Module):
    """Patches of 8 pixels, a class token, and torch's own encoder."""

    def __init__(self, batch_first: bool, norm_first: bool) -> None:
        super().__init__()
        self.batch_first = batch_first
        self.patches = nn.Conv2d(3, 12, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 12))
        layer = nn.TransformerEncoderLayer(
            12, 3, 24, batch_first=batch_first, norm_first=norm_first
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(12, 5)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(len(images), -1, -1), patches], dim=1)
        if self.batch_first:
            return self.head(self.encoder(tokens)[:, 0])
        return self.head(self.encoder(tokens.transpose(0, 1))[0])


class Attention(nn.Module):
    """Gives its weights beside what it computes, and takes a keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, tokens: Tensor, *, weights: bool) -> tuple[Tensor, Tensor | None]:
        return self.heads(tokens, tokens, tokens, need_weights=weights)


class Layer(nn.Module):
    """A block in the style of Hugging Face: of keywords, and a tuple of what it computed."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention, self.mlp = Attention(), nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8))

    def forward(self, *, hidden_states: Tensor, weights: bool) -> tuple[Tensor, Tensor | None]:
        found, scores = self.attention(self.before(hidden_states), weights=weights)
        hidden_states = found + hidden_states
        return self.mlp(self.after(hidden_states)) + hidden_states, scores


class OneOfYours(nn.Module):
    """A network that returns a dict, or an object with `logits`."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        super().__init__()
        self.answer = answer
        self.patches = nn.Conv2d(3, 8, 8, 8)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.head = nn.Linear(8, 5)

    def forward(self, pixel_values: Tensor) -> Any:
        tokens = self.patches(pixel_values).flatten(2).transpose(1, 2)
        attentions = []
        for layer in self.layers:
            tokens, scores = layer(hidden_states=tokens, weights=True)
            attentions.append(scores)
        return self.answer(
            attentions=attentions, hidden_states=tokens, logits=self.head(tokens.mean(1))
        )


@dataclass(frozen=True)
class Kind:
    """How a network is built, and for images of which size."""

    build: Callable[[], nn.Module]
    image_size: int = 32


def of_timm(name: str, image_size: int = 32, **keywords: Any) -> Kind:
    return Kind(partial(timm, name, **keywords), image_size)


SMALL = {"img_size": 32, "patch_size": 8, "embed_dim": 12, "depth": 2, "num_heads": 2}
KINDS = {
    "swinv2": of_timm(
        *("swinv2_tiny_window8_256", 32),
        img_size=32,
        patch_size=2,
        window_size=4,
        embed_dim=8,
        depths=(2, 1),
        num_heads=(1, 2),
    ),
    "beit": of_timm("beit_base_patch16_224", **SMALL),
    "xcit": of_timm("xcit_nano_12_p16_224", 64, img_size=64, embed_dim=16, depth=2, num_heads=2),
    "cait": of_timm("cait_xxs24_224", **SMALL),
    "eva02": of_timm("eva02_tiny_patch14_224", **SMALL | {"embed_dim": 16}),
    "maxvit": of_timm("test_maxvit", 64, img_size=64),
    "coatnet": of_timm("test_coatnet", 64, img_size=64),
    "convnextv2": of_timm("convnextv2_atto", depths=(1, 1, 2, 1), dims=(4, 8, 8, 12)),
    "regnet": of_timm("regnety_002"),
    "efficientnet": of_timm("efficientnet_b0", 64),
    "mobilenetv3": of_timm("mobilenetv3_small_050", 64),
    "mobilevit": of_timm("mobilevit_xxs", 64),
    "poolformer": of_timm("poolformer_s12", 64),
    "pvt_v2": of_timm("pvt_v2_b0", 64, depths=(1, 1, 2, 1), embed_dims=(8, 8, 10, 16)),
    "hiera": of_timm("hiera_tiny_224", 64, img_size=64, embed_dim=16, stages=(1, 2, 2, 1)),
    "vgg": of_timm("vgg11", mlp_ratio=0.01),
    "densenet": of_timm("densenet121", growth_rate=8, block_config=(2, 2, 3, 2)),
    "repvgg": of_timm("repvgg_a0"),
    "levit": of_timm("levit_128s", 96, img_size=96),
    "nfnet": of_timm("test_nfnet"),
    "torchvision vit": Kind(torchvision_vit),
    "torchvision swin": Kind(torchvision_swin),
    "torchvision resnet": Kind(torchvision_resnet),
    "encoder": Kind(partial(EncoderViT, True, True)),
    "encoder, norm last": Kind(partial(EncoderViT, True, False)),
    "encoder, sequence first": Kind(partial(EncoderViT, False, True)),
    "encoder, sequence first, norm last": Kind(partial(EncoderViT, False, False)),
    "dict": Kind(partial(OneOfYours, dict)),
    "object with logits": Kind(partial(OneOfYours, SimpleNamespace)),
}


def build(name: str) -> nn.Module:
    """Return a network with random weights, none of which hides a branch."""
    torch.manual_seed(0)
    model = KINDS[name].build().eval()
    for parameter in model.parameters():
        if parameter.ndim < 2 or float(parameter.detach().abs().max()) < 0.05:
            nn.init.uniform_(parameter, 0.2, 0.8)
    return model
