"""Weights of other libraries: what their own networks compute, timm's compute with these weights.

The networks are the libraries' own with random weights, small where their size can be chosen.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.checkpoints import saved
from tests.helpers.networks import build_empty, build_undrawn, described
from tests.helpers.refusals import refusal
from vitscope.files.tensors import TensorFile
from vitscope.networks.building.networks import fill, find_family
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.checkpoints.conversion import convert, load_converted_model
from vitscope.networks.checkpoints.translation import find_layout, translate

timm = import_timm()
torchvision = pytest.importorskip("torchvision")

CLASSES, SIZE = 5, 32
Build = Callable[[], nn.Module]


def disturbed(network: nn.Module) -> nn.Module:
    """Give every weight and buffer values of their own: no two layers and no two scales agree."""
    generator = torch.Generator().manual_seed(0)
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            noise = 0.1 * torch.randn(tensor.shape, generator=generator)
            tensor.add_(noise.abs() if name.endswith("running_var") else noise)
    return network.eval()


def renamed(weights: dict[str, Tensor], *pairs: tuple[str, str]) -> dict[str, Tensor]:
    """Return weights whose names have parts replaced, one after another."""
    found = {}
    for name, tensor in weights.items():
        for new, old in pairs:
            name = name.replace(new, old)
        found[name] = tensor
    return found


def model_of_a_study(family: str, arch: dict[str, Any]) -> dict[str, Any]:
    return described(SIZE) | {"family": family, "arch": arch, "classes": CLASSES}


def of_torchvision(network: str, *arguments: Any, **options: Any) -> Build:
    return lambda: getattr(torchvision.models, network)(*arguments, **options, num_classes=CLASSES)


def convnext_blocks() -> list[Any]:
    block = torchvision.models.convnext.CNBlockConfig
    return [block(8, 16, 1), block(16, 24, 2), block(24, 32, 1), block(32, None, 1)]


STAGES = {"embed_dim": 8, "depths": [2, 2, 1], "num_heads": [1, 2, 4], "window_size": 2}
VIT_ARCH = {"patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2}
SWIN_ARCH = STAGES | {"patch_size": 4}
CONVNEXT_ARCH = {"patch_size": 4, "depths": [1, 2, 1, 1], "dims": [8, 16, 24, 32]}

# Whose names a file has, the network that wrote it, and the model of a study that reads it.
CLASSIFYING: dict[str, tuple[str, Build, str, dict[str, Any]]] = {
    "torchvision's ViT": (
        "torchvision's ViT",
        of_torchvision("VisionTransformer", SIZE, 8, 2, 2, 24, 96),
        "vit",
        VIT_ARCH,
    ),
    "torchvision's Swin": (
        "torchvision's Swin",
        of_torchvision("SwinTransformer", [4, 4], 8, [2, 2, 1], [1, 2, 4], [2, 2]),
        "swin",
        SWIN_ARCH,
    ),
    "torchvision's ConvNeXt": (
        "torchvision's ConvNeXt",
        lambda: torchvision.models.ConvNeXt(convnext_blocks(), num_classes=CLASSES),
        "convnext",
        CONVNEXT_ARCH,
    ),
    "torchvision's ResNet-18": (
        "a ResNet of torchvision or timm",
        of_torchvision("resnet18"),
        "timm_resnet",
        {"name": "resnet18"},
    ),
    "torchvision's ResNet-50": (
        "a ResNet of torchvision or timm",
        of_torchvision("resnet50"),
        "timm_resnet",
        {"name": "resnet50"},
    ),
}


@torch.inference_mode()
def output(network: nn.Module) -> Tensor:
    return network(torch.randn(2, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("case", CLASSIFYING)
def test_logits_of_a_converted_file_are_those_of_its_own_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    layout, build, family, arch = CLASSIFYING[case]
    network = disturbed(build())
    model = model_of_a_study(family, arch)
    # As a part of something larger, which has no part in whose names they are.
    for before in ("", "model.backbone."):
        named = {f"{before}{name}": tensor for name, tensor in network.state_dict().items()}
        file = saved(tmp_path / "network.pth", named)
        capsys.readouterr()
        convert(file, model, tmp_path / "converted", label="Model", origin="a")
        assert torch.allclose(
            output(load_converted_model(tmp_path / "converted", model)),
            output(network),
            rtol=0,
            atol=1e-5,
        )
        if family == "timm_resnet":
            assert "translation" not in TensorFile(tmp_path / "converted").metadata
        else:
            assert TensorFile(tmp_path / "converted").metadata["translation"] == layout
            said = f"Model: {file} has the names of {layout}, which are translated."
            assert said in capsys.readouterr().out
    assert output(network).std() > 1e-2


def test_a_network_of_timm_by_its_name_takes_weights_of_other_names(tmp_path: Path) -> None:
    network = disturbed(CLASSIFYING["torchvision's ViT"][1]())
    model = model_of_a_study("timm", VIT_ARCH | {"name": "vit_small_patch16_224"})
    file = saved(tmp_path / "a.pth", network.state_dict())
    convert(file, model, tmp_path / "own", label="ViT", origin="a")
    found = output(load_converted_model(tmp_path / "own", model))
    assert torch.allclose(found, output(network), rtol=0, atol=1e-5)


def test_the_first_files_of_torchvision_name_the_layers_of_mlps_otherwise(tmp_path: Path) -> None:
    _, build, family, arch = CLASSIFYING["torchvision's ViT"]
    weights = disturbed(build()).state_dict()
    older = renamed(weights, (".mlp.0.", ".mlp.linear_1."), (".mlp.3.", ".mlp.linear_2."))
    model = build_empty(family, arch, CLASSES, SIZE)
    assert older.keys() != weights.keys()
    expected = translate(weights, model).weights
    found = translate(older, model).weights
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)


@pytest.mark.parametrize("case", CLASSIFYING)
def test_files_of_other_networks_are_recognized(tmp_path: Path, case: str) -> None:
    layout, build, *_ = CLASSIFYING[case]
    model = model_of_a_study("mixer", {"patch_size": 4, "num_blocks": 1, "embed_dim": 8})
    file = saved(tmp_path / "a.pth", build().state_dict())
    sentence = refusal(convert, file, model, tmp_path / "converted", label="Model", origin="a")
    said = f"; its names are those of {layout}, which no model of the family 'mixer' has): correct"
    assert said in sentence
    assert "missing: stem.proj.weight, " in sentence


def test_a_translated_file_of_another_size_does_not_fit() -> None:
    layout, build, *_ = CLASSIFYING["torchvision's ViT"]
    found = translate(build().state_dict(), build_empty("vit", VIT_ARCH, CLASSES, 64))
    assert found.by == layout
    assert found.misfit == (1, 0)
    assert found.weights["pos_embed"].shape == (1, 17, 24)


def timm_weights(family: str, arch: dict[str, Any]) -> dict[str, Tensor]:
    return disturbed(find_family(family).build(arch, CLASSES, SIZE)).state_dict()


def authors_convnext(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a ConvNeXt of timm under the names of its authors."""
    return renamed(
        weights,
        ("head.norm.", "norm."),
        ("head.fc.", "head."),
        ("stem.", "downsample_layers.0."),
        *((f"stages.{n}.downsample.", f"downsample_layers.{n}.") for n in range(4)),
        (".blocks.", "."),
        (".conv_dw.", ".dwconv."),
        (".mlp.fc", ".pwconv"),
    )


def test_timm_translates_what_it_knows_of() -> None:
    model = build_undrawn("convnext", CONVNEXT_ARCH, CLASSES, SIZE)
    own = fill(model, timm_weights("convnext", CONVNEXT_ARCH)).state_dict()
    stored = authors_convnext(own)
    assert not stored.keys() & {"stem.0.weight", "head.fc.weight"}
    found = translate(stored, model)
    assert (found.by, found.misfit, found.left_out) == ("the network's authors", (0, 0), ())
    assert all(torch.equal(found.weights[name], own[name]) for name in own)
    # Its translation knows all names of the network, and these are none of them.
    found = translate(stored | {"decoder.weight": torch.ones(2, 2)}, model)
    assert found.misfit == (0, 1)
    assert "decoder.weight" in found.weights


def test_timm_translates_clip_without_its_text() -> None:
    kind = timm.models.vision_transformer.VisionTransformer
    model = kind(img_size=SIZE, **VIT_ARCH, num_classes=0, pre_norm=True)
    own = disturbed(model).state_dict()
    visual = renamed(
        own,
        ("patch_embed.proj", "conv1"),
        ("pos_embed", "positional_embedding"),
        ("cls_token", "class_embedding"),
        ("norm_pre", "ln_pre"),
        ("attn.qkv.", "attn.in_proj_"),
        ("attn.proj", "attn.out_proj"),
        ("mlp.fc1", "mlp.c_fc"),
        ("mlp.fc2", "mlp.c_proj"),
        ("blocks.", "transformer.resblocks."),
        (".norm", ".ln_"),
        ("norm.", "ln_post."),
    )
    visual["positional_embedding"] = visual["positional_embedding"][0]
    visual["class_embedding"] = visual["class_embedding"][0, 0]
    stored = {f"visual.{name}": tensor for name, tensor in visual.items()}
    stored["visual.proj"] = torch.ones(24, 512)
    stored |= {"positional_embedding": torch.ones(7, 24), "text_projection": torch.ones(24, 24)}
    found = translate(stored, model, {"head.weight", "head.bias"})
    assert (found.by, found.misfit) == ("the network's authors", (0, 0))
    assert all(torch.equal(found.weights[name], own[name]) for name in own)
    assert {*found.left_out} == {"positional_embedding", "text_projection"}


@pytest.mark.parametrize("size", [64, 96])
def test_timm_may_not_resize_weights(size: int) -> None:
    weights = timm_weights("vit", VIT_ARCH)
    model = build_empty("vit", VIT_ARCH, CLASSES, size)
    found = translate(weights | {"mask_token": torch.ones(1)}, model)
    assert found.weights["pos_embed"] is weights["pos_embed"]
    assert found.misfit[0] == 1


def test_timm_may_not_resize_tables() -> None:
    weights = timm_weights("swin", SWIN_ARCH)
    model = build_empty("swin", SWIN_ARCH | {"window_size": 4}, CLASSES, SIZE)
    found = translate(weights | {"layers.0.attn_mask": torch.ones(1)}, model)
    table = "layers.0.blocks.0.attn.relative_position_bias_table"
    assert found.weights[table] is weights[table]
    assert found.misfit[0] > 0


def test_names_of_nobody_known() -> None:
    assert find_layout(["a.weight", "fc.bias"]) is None
    assert find_layout(timm_weights("vit", VIT_ARCH)) is None


@pytest.mark.nightly
@pytest.mark.parametrize("module", timm.list_modules())
def test_every_network_of_timm_has_a_classifier_that_can_be_left_out(module: str) -> None:
    name, *_ = timm.list_models(module=module)
    with torch.device("meta"):
        whole, body = (timm.create_model(name, num_classes=classes) for classes in (7, 0))
    classifier = whole.state_dict().keys() - body.state_dict().keys()
    found = translate(whole.state_dict(), body, classifier)
    assert (found.by, found.misfit) == ("", (0, 0))
    assert {*found.left_out} == classifier
    assert classifier
