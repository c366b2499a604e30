"""Where parameters are: in blocks as the block table counts them, and in kinds of layers."""

from collections import Counter

import pytest
import torch

from tests.helpers.kinds import KINDS, build
from tests.helpers.networks import FAMILIES, described, mini, mini_blocks
from vitscope.networks.finding.blocks import LAYERS, Layer, list_blocks, place_parameters


@pytest.mark.parametrize("name", FAMILIES.values())
def test_every_parameter_is_in_one_block_and_one_kind_of_layer(name: str) -> None:
    model, points = mini(name)
    places = place_parameters(model, points, torch.randn(2, 3, 32, 32))
    assert list(places) == [each for each, _ in model.named_parameters()]
    counted: Counter[int] = Counter()
    for each, parameter in model.named_parameters():
        counted[places[each].block] += parameter.numel()
        assert places[each].layer in LAYERS
    # The block table counts them otherwise: on shapes alone, as modules run.
    found = mini_blocks(name)
    expected = [*found.table["parameters"], found.head.parameters]
    assert [counted[index] for index in range(len(points) + 1)] == expected


# As one reads in the code of the networks.
LAYERS_OF: dict[str, dict[str, Layer]] = {
    "vit": {
        "cls_token": "stem",
        "pos_embed": "stem",
        "patch_embed.proj.bias": "stem",
        "blocks.3.norm1.weight": "norm",
        "blocks.3.attn.qkv.weight": "qkv",
        "blocks.3.attn.proj.weight": "projection",
        "blocks.3.attn.proj.bias": "projection",
        "blocks.3.mlp.fc1.bias": "mlp",
        "blocks.3.mlp.fc2.weight": "mlp",
        "norm.weight": "norm",
        "head.weight": "head",
        "head.bias": "head",
    },
    "swin": {
        "patch_embed.norm.weight": "norm",
        "layers.0.blocks.0.attn.relative_position_bias_table": "other",
        "layers.0.blocks.1.attn.qkv.weight": "qkv",
        "layers.1.downsample.reduction.weight": "mlp",
    },
    "alternet": {
        "layer1.0.conv3.2.weight": "convolution",
        "layer1.0.conv3.0.weight": "norm",
        "layer3.1.attn.pos_embedding": "other",
    },
    "convnext": {
        "stages.0.blocks.0.gamma": "other",
        "stages.0.blocks.0.conv_dw.weight": "convolution",
        "stages.0.blocks.0.mlp.fc1.weight": "mlp",
    },
    "swinv2": {
        "layers.0.blocks.0.attn.cpb_mlp.0.weight": "other",
        "layers.0.blocks.0.attn.logit_scale": "other",
        "layers.0.blocks.0.attn.qkv.weight": "qkv",
    },
    # Biases of queries and values are put together, those of keys are zero.
    "beit": {"blocks.0.attn.q_bias": "other", "blocks.0.attn.qkv.weight": "qkv"},
    # Queries and keys are turned by their positions.
    "eva02": {"blocks.0.attn.qkv.weight": "qkv", "blocks.0.attn.proj.weight": "projection"},
    # Weights are standardized before they are used.
    "nfnet": {"stages.0.0.conv1.weight": "convolution"},
    # Reduced keys come from a convolution and another layer.
    "pvt_v2": {"stages.0.blocks.0.attn.sr.weight": "convolution"},
    # Its layers are no modules that run.
    "torchvision vit": {
        "encoder.layers.encoder_layer_0.self_attention.in_proj_weight": "qkv",
        "encoder.layers.encoder_layer_0.self_attention.in_proj_bias": "qkv",
        "encoder.layers.encoder_layer_0.self_attention.out_proj.bias": "projection",
    },
}


@pytest.mark.parametrize("name", LAYERS_OF)
def test_layers_are_what_their_code_makes_them(name: str) -> None:
    if name in KINDS:
        model, size = build(name), KINDS[name].image_size
        points = list_blocks(name, model, described(size)).points
    else:
        (model, points), size = mini(name), 32
    places = place_parameters(model, points, torch.randn(2, 3, size, size))
    expected = LAYERS_OF[name]
    assert {each: places[each].layer for each in expected} == expected
    if name != "nfnet":
        # A bias is in the layer of its weight.
        for each, place in places.items():
            weight = places.get(each.removesuffix("bias") + "weight", place)
            assert not each.endswith(".bias") or weight == place
