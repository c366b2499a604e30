import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from tests.helpers.hub import Hub
from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import describe_misread_attentions
from vitscope.networks.building.family import prepare_family_arch
from vitscope.networks.building.networks import drawn_network
from vitscope.networks.building.timm_import import declare_torchvision_operators
from vitscope.networks.checkpoints.conversion import convert, load_converted_model
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.joins import prove_capture

declare_torchvision_operators()
transformers = pytest.importorskip("transformers")

SIZE, CLASSES = 32, 3
IMAGES = torch.randn(2, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
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


def published(kind: str, folder: Path) -> nn.Module:
    """Publish a classifier in a folder, as transformers does, and return it."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **NETWORKS[kind][0], num_labels=CLASSES)
    network: nn.Module = transformers.AutoModelForImageClassification.from_config(config)
    network.save_pretrained(folder)
    return network.eval()


def uploaded(kind: str, hub: Hub, folder: Path) -> tuple[nn.Module, Path]:
    """Publish a classifier on the hub; return it, and the file of its weights."""
    network = published(kind, folder)
    for file in folder.iterdir():
        hub.put(NAME, file.name, file.read_bytes())
    return network, folder / "model.safetensors"


WHERE = "my.yaml: models.m.arch"


def described(
    classes: int | None = CLASSES, family: str = "hf", study: Path = Path(), **arch: Any
) -> dict[str, Any]:
    """Describe a model of a study; one of the family hf is of the repository if it has no arch."""
    return {
        "family": family,
        "arch": prepare_family_arch(family, arch or {"repository": NAME}, study, WHERE),
        "classes": classes,
        "image_size": SIZE,
        "mean": [0.5] * 3,
    }


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_published_network_is_read_with_its_weights(kind: str, hub: Hub, tmp_path: Path) -> None:
    theirs, file = uploaded(kind, hub, tmp_path / "theirs")
    network, target = described(), tmp_path / "ours.safetensors"
    convert(file, network, target, label="m", origin="hub")
    ours = load_converted_model(target, network)
    of_folder = described(study=tmp_path, folder="theirs")
    convert(file, of_folder, tmp_path / "ours", label="m", origin="folder")
    with torch.inference_mode():
        assert torch.equal(ours(IMAGES), theirs(IMAGES).logits)
        assert torch.equal(load_converted_model(tmp_path / "ours", of_folder)(IMAGES), ours(IMAGES))
    blocks = list_blocks("m", ours, network)
    assert blocks.table["kind"].tolist() == NETWORKS[kind][1]
    proofs = prove_capture(ours, blocks.points, IMAGES)
    assert not proofs.wrong
    assert proofs.silenced == sum(each in ("msa", "mlp", "conv") for each in NETWORKS[kind][1])
    found = find_attention(ours, network, blocks.points)
    assert len(found.attentions) == NETWORKS[kind][1].count("msa")
    assert not found.refused
    assert describe_misread_attentions(ours, found.attentions, IMAGES) == []


def test_a_folder_is_relative_absolute_or_below_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published("vit", tmp_path / "study/theirs")
    config = json.loads((tmp_path / "study/theirs/config.json").read_bytes())
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("theirs", str(tmp_path / "study/theirs"), "~/study/theirs"):
        found = described(study=tmp_path / "study", folder=folder)["arch"]
        assert found == {"folder": folder, "config": config}


OTHERS = {
    "vit": {"patch_size": 8, "embed_dim": 16, "depth": 2, "num_heads": 2},
    "swin": {key: SWIN[key] for key in SWIN.keys() - {"image_size", "num_channels"}},
    "convnext": {"name": "convnext_atto"},
    "timm": {"name": "vit_tiny_patch16_224"},
    "resnet": {"depth": 18},
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_other_families_do_not_take_its_weights(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = published(kind, tmp_path).state_dict()
    torch.save({f"model.{name}": tensor for name, tensor in weights.items()}, tmp_path / "a.pth")
    capsys.readouterr()
    for file in (tmp_path / "model.safetensors", tmp_path / "a.pth"):
        for family, arch in OTHERS.items():
            network = described(family=family, **arch)
            ours = tmp_path / "ours"
            assert refusal(convert, file, network, ours, label="m", origin="folder") == (
                f"m: {file} has the names of a network of Hugging Face, which no model of the "
                f"family '{family}' has: use `family: hf`, with a `repository` or a `folder` as "
                f"`arch`."
            )
    assert capsys.readouterr().out == ""


def test_weights_of_another_network_of_transformers_do_not_fit(tmp_path: Path) -> None:
    published("vit", tmp_path / "vit")
    published("swin", tmp_path / "swin")
    network = described(study=tmp_path, folder="swin")
    file, ours = tmp_path / "vit/model.safetensors", tmp_path / "ours"
    assert "does not fit the model" in refusal(convert, file, network, ours, label="m", origin="")


def test_features_take_no_classifier(hub: Hub, tmp_path: Path) -> None:
    _, file = uploaded("vit", hub, tmp_path / "theirs")
    network, target = described(None), tmp_path / "ours.safetensors"
    convert(file, network, target, label="m", origin="hub")
    assert not any(
        "classifier" in name for name in load_converted_model(target, network).state_dict()
    )
    # Weights that do not fit are named.
    weights = safetensors.torch.load_file(file)
    del weights["vit.layernorm.bias"]
    safetensors.torch.save_file(weights | {"more": torch.ones(1)}, file)
    with pytest.raises(VitscopeError, match=r"missing: vit\.layernorm\.bias; left over: more"):
        convert(file, described(), tmp_path / "ours", label="m", origin="hub")


def test_the_configuration_is_fetched_once(hub: Hub) -> None:
    hub.put(NAME, "config.json", json.dumps({"model_type": "vit", **ONE}).encode())
    arch = described()["arch"]
    asked = len(hub.server.requests)
    assert arch["config"] == {"model_type": "vit", **ONE}
    assert described()["arch"] == arch
    assert len(hub.server.requests) == asked > 0


def test_a_revision_is_another_network(hub: Hub) -> None:
    hub.put(NAME, "config.json", b'{"model_type": "vit"}', "v2")
    assert described(repository=f"{NAME}@v2")["arch"]["config"] == {"model_type": "vit"}


@pytest.mark.parametrize(
    ("key", "config", "reason"),
    [
        (
            "folder",
            None,
            r"\S+/theirs/config\.json cannot be read \(No such file or directory\): gi",
        ),
        ("folder", b"{", r"config\.json of 'theirs' is no JSON"),
        ("folder", b"\xff", r"config\.json of 'theirs' is no JSON"),
        ("folder", b"{}", r"names no model_type: choose the folder of a network of transformers"),
        ("repository", None, r"config\.json of 'owner/name' cannot be had from the hub .*HF_TOKEN"),
        ("repository", b"{", r"config\.json of 'owner/name' is no JSON"),
        ("repository", b"[]", r"names no model_type: choose the repository of a network of transf"),
    ],
)
def test_what_is_no_network_is_refused(
    key: str, config: bytes | None, reason: str, hub: Hub, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    if config is not None:
        (tmp_path / "theirs/config.json").write_bytes(config)
        hub.put(NAME, "config.json", config)
    arch = {"folder": "theirs", "repository": NAME}
    with pytest.raises(VitscopeError, match=rf"^my\.yaml: models\.m\.arch\.{key}: .*{reason}"):
        described(study=tmp_path, **{key: arch[key]})


@pytest.mark.parametrize("config", [{"model_type": "mine"}, {"model_type": "bert"}])
def test_other_networks_are_refused(config: dict[str, str], hub: Hub) -> None:
    hub.put(NAME, "config.json", json.dumps(config).encode())
    assert "No network can be built from arch" in refusal(drawn_network, described())


def test_code_of_a_repository_is_not_run(hub: Hub, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    code = f"open({str(marker)!r}, 'w').close()".encode()
    hub.put(NAME, "mine.py", code)
    config = {"model_type": "vit", **ONE, "auto_map": {"AutoConfig": "mine.Config"}}
    hub.put(NAME, "config.json", json.dumps(config).encode())
    drawn_network(described())
    assert not marker.exists()
    assert not any("mine.py" in path for path, _ in hub.server.requests)
