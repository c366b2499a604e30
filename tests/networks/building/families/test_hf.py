"""Networks of Hugging Face's hub: built, filled and read as transformers itself has them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from tests.helpers.hub import Hub, running_hub
from vitscope.errors import VitscopeError
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import unlike
from vitscope.networks.building.family import prepare
from vitscope.networks.building.networks import drawn_network
from vitscope.networks.building.timm_import import declare
from vitscope.networks.checkpoints.conversion import convert, load_model
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.capture import prove

declare()
transformers = pytest.importorskip("transformers")

SIZE, CLASSES = 32, 3
ONE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "image_size": SIZE,
    "patch_size": 8,
}
STAGES = {"image_size": SIZE, "num_channels": 3, "depths": [1, 2]}
SWIN = {**STAGES, "patch_size": 4, "embed_dim": 8, "num_heads": [2, 4], "window_size": 4}
# The kinds of the cut points of each network: what it says of itself in the papers.
TOKENS = ["stem", *["msa", "mlp"] * 2]
NETWORKS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "vit": (ONE, TOKENS),
    "deit": ({**ONE, "architectures": ["DeiTForImageClassification"]}, TOKENS),
    "dinov2": ({**ONE, "mlp_ratio": 2}, TOKENS),
    "beit": ({**ONE, "use_relative_position_bias": True}, TOKENS),
    "swin": (SWIN, ["stem", "msa", "mlp", "pool", *["msa", "mlp"] * 2]),
    "convnext": (
        {**STAGES, "num_stages": 2, "hidden_sizes": [8, 16]},
        ["stem", "conv", "pool", *["conv"] * 2],
    ),
}
NAME = "owner/name"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with running_hub(tmp_path / "cache", monkeypatch) as hub:
        yield hub


def published(kind: str, folder: Path) -> nn.Module:
    """Publish a classifier in a folder, as transformers does, and return it."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **NETWORKS[kind][0], num_labels=CLASSES)
    network: nn.Module = transformers.AutoModelForImageClassification.from_config(config)
    network.save_pretrained(folder)
    return network.eval()


def upload(hub: Hub, folder: Path) -> None:
    for file in folder.iterdir():
        hub.put(NAME, file.name, file.read_bytes())


def described(classes: int | None = CLASSES) -> dict[str, Any]:
    arch = prepare("hf", {"repository": NAME}, Path(), "my.yaml: models.m.arch")
    return {
        "family": "hf",
        "arch": arch,
        "classes": classes,
        "image_size": SIZE,
        "mean": [0.5] * 3,
    }


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_published_network_is_read_with_its_weights(kind: str, hub: Hub, tmp_path: Path) -> None:
    theirs = published(kind, tmp_path / "theirs")
    upload(hub, tmp_path / "theirs")
    network, target = described(), tmp_path / "ours.safetensors"
    file = tmp_path / "theirs" / "model.safetensors"
    convert(file, network, target, label="m", origin="hub")
    ours = load_model(target, network)
    images = torch.randn(2, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        assert torch.equal(ours(images), theirs(images).logits)
    blocks = list_blocks("m", ours, network)
    assert blocks.table["kind"].tolist() == NETWORKS[kind][1]
    proofs = prove(ours, blocks.points, images)
    assert not proofs.wrong
    assert proofs.silenced == sum(each in ("msa", "mlp", "conv") for each in NETWORKS[kind][1])
    found = find_attention(ours, network, blocks.points)
    assert len(found.attentions) == NETWORKS[kind][1].count("msa")
    assert not found.refused
    assert unlike(ours, found.attentions, images) == []


def test_features_take_no_classifier(hub: Hub, tmp_path: Path) -> None:
    published("vit", tmp_path / "theirs")
    upload(hub, tmp_path / "theirs")
    network, target = described(None), tmp_path / "ours.safetensors"
    convert(tmp_path / "theirs/model.safetensors", network, target, label="m", origin="hub")
    assert not any("classifier" in name for name in load_model(target, network).state_dict())


def test_weights_that_do_not_fit_are_named(hub: Hub, tmp_path: Path) -> None:
    published("vit", tmp_path / "theirs")
    upload(hub, tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    weights = safetensors.torch.load_file(file)
    del weights["vit.layernorm.bias"]
    safetensors.torch.save_file(weights | {"more": torch.ones(1)}, file)
    with pytest.raises(VitscopeError, match=r"missing: vit\.layernorm\.bias; left over: more"):
        convert(file, described(), tmp_path / "ours", label="m", origin="hub")


def test_the_configuration_is_fetched_once(hub: Hub) -> None:
    hub.put(NAME, "config.json", json.dumps({"model_type": "vit", **ONE}).encode())
    arch = described()["arch"]
    asked = len(hub.requests)
    assert arch["config"] == {"model_type": "vit", **ONE}
    assert described()["arch"] == arch
    assert len(hub.requests) == asked > 0


def test_a_revision_is_another_network(hub: Hub) -> None:
    hub.put(NAME, "config.json", b'{"model_type": "vit"}', "v2")
    arch = prepare("hf", {"repository": f"{NAME}@v2"}, Path(), "arch")
    assert arch["config"] == {"model_type": "vit"}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (None, r"config\.json of 'owner/name' cannot be had from the hub \(\w+: .*HF_TOKEN"),
        (b"{", r"config\.json of 'owner/name' is no JSON"),
        (b"[]", r"names no model_type: choose the repository of a network of transformers"),
    ],
)
def test_what_is_no_network_is_refused(config: bytes | None, reason: str, hub: Hub) -> None:
    if config is not None:
        hub.put(NAME, "config.json", config)
    with pytest.raises(VitscopeError, match=rf"^my\.yaml: models\.m\.arch\.repository: .*{reason}"):
        described()


@pytest.mark.parametrize("config", [{"model_type": "mine"}, {"model_type": "bert"}])
def test_other_networks_are_refused(config: dict[str, str], hub: Hub) -> None:
    hub.put(NAME, "config.json", json.dumps(config).encode())
    with pytest.raises(VitscopeError, match="No network can be built from arch"):
        drawn_network(described())


def test_code_of_a_repository_is_not_run(hub: Hub, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    code = f"open({str(marker)!r}, 'w').close()".encode()
    hub.put(NAME, "mine.py", code)
    config = {"model_type": "vit", **ONE, "auto_map": {"AutoConfig": "mine.Config"}}
    hub.put(NAME, "config.json", json.dumps(config).encode())
    drawn_network(described())
    assert not marker.exists()
    assert not any("mine.py" in request for request in hub.requests)
