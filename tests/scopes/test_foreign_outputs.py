import ast
import re
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.helpers.networks import described
from tests.helpers.refusals import refusal
from tests.scopes.networks import (
    CHANNELS,
    CLASSES,
    Convolutions,
    Transformer,
    looked_at,
    network,
    pixels,
)
from vitscope.errors import VitscopeError
from vitscope.networks.building.family import prepare_family_arch
from vitscope.networks.building.networks import empty_network, why_built_without_classifier
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.checking import check_network
from vitscope.studies.loading import load_study

VIT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 8}
NET = """
from transformers import ViTConfig, ViTModel
from tests.scopes import test_foreign_outputs as networks
from tests.scopes.networks import network

def build(**settings): return ViTModel(ViTConfig(**settings))
def half(): return network().bfloat16()
def double(): return network().double()
def auxiliary(): return networks.Auxiliary()
def compiled(): return networks.torch.compile(networks.Auxiliary())
def features(): return networks.of_transformers("ViT")
"""


class Auxiliary(Convolutions):
    """Logits, and those of a head that helps training, of other classes."""

    def __init__(self) -> None:
        super().__init__()
        self.aux = nn.Linear(CHANNELS, 7)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(images), self.aux(self.stem(images).mean((2, 3)))


class Caching(Convolutions):
    """Keeps a grid for each size of images, as detectors keep their anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.grids: dict[int, Tensor] = {}

    def forward(self, images: Tensor) -> Tensor:
        size = images.shape[-1]
        if size not in self.grids:
            self.grids[size] = torch.ones(size, device=images.device)
        return super().forward(images * self.grids[size])


def of_transformers(kind: str) -> nn.Module:
    import_timm()
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{kind}Config")(**VIT, image_size=16)
    return getattr(transformers, f"{kind}Model")(config)


# What is compared, of images, positions, classes and the loss.
MEASURED = {
    "feature_variance": "variance",
    "fourier": "log_amplitude",
    "cka": "cka",
    "singular_values": "effective_rank",
    "predictions": "nll",
    "robustness": "nll",
    "landscape": "loss",
}
SHORT = {
    "robustness": {"corruptions": ["fog"], "severities": [1]},
    "landscape": {"points": 3, "precision": "float32"},
}


@pytest.mark.parametrize("kind", [Convolutions, Transformer])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_a_network_is_measured_in_its_own_type(kind: type[nn.Module], dtype: torch.dtype) -> None:
    """To 8 roundings of its type it has what its weights have in float64."""
    model = network(kind).to(dtype)
    more = {"analysis": SHORT, "loss": {"weight_decay": 0.1}}
    own, exact = looked_at(model, **more), looked_at(deepcopy(model).double(), **more)
    tolerance = 8 * max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    tables = MEASURED | ({"attention": "distance"} if kind is Transformer else {})
    for name, column in tables.items():
        found, wanted = (each.table(name)[column].to_numpy() for each in (own, exact))
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, 0, tolerance * scale, err_msg=name)
    # To the bit, its maps are those that it computes of images of its type.
    with torch.no_grad():
        stem = next(model.children())(((pixels() / 255 - 0.5) / 0.25).to(dtype))
    (_, read), *_ = own.maps()
    np.testing.assert_array_equal(read, stem.float().numpy())
    assert {each.dtype for each in model.parameters()} == {dtype}


def fpn() -> nn.Module:
    utils = import_timm("torchvision.models.detection.backbone_utils")
    return utils.resnet_fpn_backbone(backbone_name="resnet18", weights=None)


# A network, how many cut points it has, what the sentence proposes, and how many values that has.
FEATURES: dict[str, tuple[Callable[[], nn.Module], int, str, int]] = {
    "DINOv2": (partial(of_transformers, "Dinov2"), 5, "pooler_output", 24),
    "ViT": (partial(of_transformers, "ViT"), 5, "pooler_output", 24),
    "CLIP": (partial(of_transformers, "CLIPVision"), 5, "pooler_output", 24),
    "of timm": (lambda: import_timm().create_model("resnet10t", features_only=True), 5, "0", 0),
    "FPN": (fpn, 9, "0", 0),
    "auxiliary": (Auxiliary, 3, "0", CLASSES),
}


@pytest.mark.parametrize("kind", FEATURES)
def test_a_network_that_returns_several_tensors(kind: str) -> None:
    build, points, proposed, values = FEATURES[kind]
    model = build()
    images = pixels() if values else nn.functional.interpolate(pixels(4), 64)
    scope = looked_at(model, images)
    assert len(scope.feature_variance) == len(scope.blocks) == points
    assert {"cka", "receptive_field", "fourier"} <= {*scope.available()}
    with pytest.raises(VitscopeError, match=f"needs a network that.*as `output: {proposed}` with"):
        scope.table("classification")
    if values:
        output = int(proposed) if proposed.isdecimal() else proposed
        chosen = looked_at(model, images, output=output)
        assert chosen.study.models[chosen.name].classes == values
        with torch.no_grad():
            returned = model.eval()((pixels() / 255 - 0.5) / 0.25)[output]
        assert chosen.predictions["prediction"].tolist() == returned.argmax(1).tolist()
    with pytest.raises(VitscopeError, match=f"without a tensor 'logit'; there are .*{proposed}"):
        looked_at(model, images, output="logit")


def headless() -> nn.Module:
    model = network()
    model.head = nn.Identity()
    return model


def headless_of_timm() -> nn.Module:
    return import_timm().create_model("resnet10t", num_classes=0)


HEADLESS = {
    "a head that does nothing": (headless, {}, "head is nn.Identity"),
    "of timm": (headless_of_timm, {}, "num_classes is 0"),
    "as it is said": (network, {"classes": None}, "no logits"),
}


@pytest.mark.parametrize("kind", HEADLESS)
def test_features_are_not_taken_for_logits(kind: str) -> None:
    build, more, why = HEADLESS[kind]
    scope = looked_at(build(), nn.functional.interpolate(pixels(2), 64), **more)
    assert scope.study.models[scope.name].classes is None
    assert not {"predictions", "classification", "lesion"} & {*scope.available()}
    with pytest.raises(VitscopeError, match=f"^predictions needs a network that tells.*{why}"):
        scope.table("predictions")
    if kind != "of timm":
        assert scope.attention_maps[["class_name", "confidence"]].isna().all(axis=None)


def test_the_head_is_the_last_module_or_the_last_of_its_list() -> None:
    model = nn.Sequential()
    model.classifier = nn.Sequential(nn.Dropout(), nn.Identity())
    assert why_built_without_classifier(model) == "classifier.1 is nn.Identity"
    model.classifier = nn.Sequential(nn.Linear(2, 2))
    model.classifier.flatten = nn.Identity()
    assert why_built_without_classifier(model) is None
    assert why_built_without_classifier(nn.Identity()) is None


def test_how_many_classes_there_are_may_be_said() -> None:
    model = headless()
    scope = vitscope.look(model, pixels(2), mean=0, std=1, classes=CHANNELS)
    assert scope.predictions["prediction"].between(0, CHANNELS - 1).all()
    sentence = refusal(vitscope.look, model, pixels(2), mean=0, std=1, classes=7)
    said = f"classes: found 7, allowed: {CHANNELS}, as the network returns a tensor 2x{CHANNELS}"
    assert said in sentence


def test_a_study_that_takes_features_for_logits_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "brought.py"
    file.write_text("from tests.scopes.test_foreign_outputs import headless\n")
    arch = prepare_family_arch("python", {"file": str(file), "make": "headless"}, tmp_path, "arch")
    asked = described(16) | {"family": "python", "arch": arch}
    said = refusal(empty_network, {**asked, "classes": CHANNELS})
    assert "no classifier (head is nn.Identity), and the study" in said
    assert empty_network({**asked, "classes": None}).state_dict()


def compiled_within() -> nn.Module:
    model = network(Convolutions)
    model.branches[0] = torch.compile(model.branches[0])
    model.head.compile()
    return model


def compiled_in_place() -> nn.Module:
    model = network(Convolutions)
    model.compile()
    return model


@pytest.mark.parametrize(
    "build", [lambda: torch.compile(network(Convolutions)), compiled_in_place, compiled_within]
)
def test_a_compiled_network_is_measured_as_the_one_that_it_is_of(
    build: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it was compiled")

    model, plain = build(), looked_at(network(Convolutions))
    monkeypatch.setattr("torch._dynamo.convert_frame.compile_frame", refuse)
    scope = looked_at(model, name=plain.name)
    for name in ("blocks", "feature_variance", "lesion", "predictions"):
        pd.testing.assert_frame_equal(scope.table(name), plain.table(name), check_exact=True)


def test_what_a_network_keeps_of_a_pass_on_shapes_is_forgotten() -> None:
    model = network(Caching)
    assert looked_at(model).feature_variance["variance"].tolist() == (
        looked_at(network(Convolutions)).feature_variance["variance"].tolist()
    )
    assert not any(grid.is_meta for grid in model.grids.values())


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        # Its anchors have no values on the meta device: it is recorded on the CPU.
        ("fcos_resnet50_fpn", "only part of the network was found: .* name the points to read"),
        # Its boxes take an operator of torchvision that may be missing here.
        ("retinanet_resnet50_fpn", "models.RetinaNet: the (network does other things|module)"),
    ],
)
def test_detectors_end_in_a_sentence_or_are_read(kind: str, sentence: str) -> None:
    models = import_timm("torchvision.models.detection")
    model = getattr(models, kind)(
        weights=None, weights_backbone=None, num_classes=5, min_size=64, max_size=64
    )
    with pytest.raises(VitscopeError, match=sentence):
        looked_at(model, pixels(2))
    if kind.startswith("fcos"):
        points = [{"module": "backbone.body.layer*.*", "inside": True}]
        assert len(looked_at(model, pixels(2), points=points).feature_variance) == 16


def brought(folder: Path, make: str, classes: int | None = CLASSES, **more: Any) -> dict[str, Any]:
    """Return what a study says of a network that is made by a function of NET."""
    (folder / "brought.py").write_text(NET)
    arch = prepare_family_arch("python", {"file": "brought.py", "make": make}, folder, "arch")
    data = described(16) | {"std": [0.25] * 3, "classes": classes}
    return {"family": "python", "arch": arch} | data | more


@pytest.mark.parametrize(
    ("make", "more"),
    [
        ("half", {}),
        ("double", {}),
        ("auxiliary", {"output": 0}),
        ("compiled", {"output": 0}),
        ("features", {"classes": None}),
        ("features", {"classes": 24, "output": "pooler_output"}),
    ],
)
def test_in_a_study_they_are_right(tmp_path: Path, make: str, more: dict[str, Any]) -> None:
    try:
        network = brought(tmp_path, make, **more)
        checked = check_network("net", network, {}, {"made": True}, Path("own.yaml"), Path())
    finally:
        torch.compiler.set_stance("default")
    assert checked.proofs.wrong == []
    assert "untrained unless it loads some" in checked.summary()


def test_a_study_has_to_say_which_tensor_the_logits_are(tmp_path: Path) -> None:
    network = brought(tmp_path, "auxiliary")
    with pytest.raises(VitscopeError, match=r"0 \(2x5\), 1 \(2x7\): say .*, as `output: 0` with"):
        list_blocks("net", empty_network(network), network)


def test_a_network_of_transformers_is_saved_as_the_sentence_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = looked_at(of_transformers("ViT"), output="pooler_output")
    with pytest.raises(VitscopeError, match=r"give make=.* For example, in a") as caught:
        scope.save(tmp_path / "saved")
    (example,) = re.findall(r"`(scope\.save.*)`", str(caught.value))
    call = ast.parse(example, mode="eval").body
    (tmp_path / "of_transformers.py").write_text(NET)
    monkeypatch.syspath_prepend(tmp_path)
    keywords = {each.arg: ast.literal_eval(each.value) for each in call.keywords[1:]}
    file = scope.save(tmp_path / "saved", import_module("of_transformers").build, **keywords)
    assert load_study(file).models[scope.name].output == "pooler_output"
