import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from tests.helpers.checkpoints import NETWORK, VIT, network_weights, same, saved
from tests.helpers.golden import ARCHS
from tests.helpers.networks import build_empty, described
from tests.helpers.processes import python
from tests.helpers.refusals import refusal
from tests.helpers.web import running_site, whole
from vitscope.errors import VitscopeError
from vitscope.files.tables import OF
from vitscope.files.tensors import TensorFile
from vitscope.jobs.opening import origin_of_opened_checkpoint
from vitscope.networks.building.networks import find_family
from vitscope.networks.checkpoints import weight_sources
from vitscope.networks.checkpoints.conversion import convert, load_converted_model, write_weights
from vitscope.networks.checkpoints.translation import translate
from vitscope.web.lockfile import find_lock_entry


def misfit(tmp_path: Path, weights: object, network: dict[str, Any] = NETWORK) -> str:
    """Return the one sentence with which a conversion is refused; nothing may be left."""
    source, target = saved(tmp_path / "source.pth", weights), tmp_path / "new" / "vit"
    sentence = refusal(convert, source, network, target, label="ViT", origin="source.pth")
    assert list((tmp_path / "new").glob("*")) == []
    assert sentence.endswith(".")
    return sentence


def converted_from(
    folder: Path, weights: object, network: dict[str, Any] = NETWORK, **options: Any
) -> Path:
    target = folder / "model"
    source = saved(folder / "source.pth", weights)
    convert(source, network, target, label="Model", origin="a", **options)
    return target


def test_a_conversion_keeps_every_value_and_says_where_it_is_from(converted, tmp_path):
    assert same(safetensors.torch.load_file(converted), network_weights())
    model = build_empty("resnet", NETWORK["arch"], 10, 32)
    assert TensorFile(converted).metadata == {
        "arch": json.dumps(NETWORK["arch"], sort_keys=True),
        "classes": "10",
        "family": "resnet",
        "image_size": "32",
        "of": "ResNet",
        "parameters": str(sum(parameter.numel() for parameter in model.parameters())),
        "source": "https://host/source.pth",
        "source_sha256": hashlib.sha256((tmp_path / "source.pth").read_bytes()).hexdigest(),
        "weights": "state_dict",
    }
    assert origin_of_opened_checkpoint(str(converted))[OF] == "ResNet"
    assert list(converted.parent.iterdir()) == [converted]
    # The order of the settings does not matter.
    turned = {**NETWORK, "arch": dict(reversed(NETWORK["arch"].items()))}
    source, again = tmp_path / "source.pth", tmp_path / "again"
    convert(source, turned, again, label="ResNet", origin="https://host/source.pth")
    assert again.read_bytes() == converted.read_bytes()


def test_a_converted_file_converts_to_the_same_weights(converted, tmp_path, capsys):
    again = tmp_path / "again.safetensors"
    convert(converted, NETWORK, again, label="ResNet", origin="resnet.safetensors")
    assert same(safetensors.torch.load_file(again), network_weights())
    assert "weights" not in TensorFile(again).metadata
    assert capsys.readouterr().out == ""


def test_the_choice_of_averaged_weights_is_reported(tmp_path, capsys):
    averaged = {name: value * 2 for name, value in network_weights().items()}
    both = {"state_dict": network_weights(), "state_dict_ema": averaged}
    target = converted_from(tmp_path, both)
    assert same(safetensors.torch.load_file(target), averaged)
    assert TensorFile(target).metadata["weights"] == "state_dict_ema"
    assert capsys.readouterr().out == (
        f"Model: {tmp_path}/source.pth holds weights more than once: those in 'state_dict_ema' are "
        f"read, those in 'state_dict' are not.\n"
    )


@pytest.mark.nightly
def test_conversions_in_other_processes_give_the_same_bytes(converted, tmp_path):
    code = (
        "import json, sys; from pathlib import Path;"
        "from vitscope.networks.checkpoints.conversion import convert;"
        "convert(Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]), label='ResNet',"
        " origin='https://host/source.pth')"
    )
    for seed in "12":
        target = tmp_path / seed
        environment = os.environ | {"PYTHONHASHSEED": seed}
        python(code, tmp_path / "source.pth", json.dumps(NETWORK), target, env=environment)
        assert target.read_bytes() == converted.read_bytes()


def test_weights_of_another_precision_get_the_types_of_the_model(tmp_path):
    weights = network_weights()
    half = {
        name: value.half() if value.is_floating_point() else value
        for name, value in weights.items()
    }
    found = safetensors.torch.load_file(converted_from(tmp_path, half))
    assert same(found, {name: half[name].to(value.dtype) for name, value in weights.items()})
    # Counters of old checkpoints may be missing.
    old = {name: value for name, value in weights.items() if "num_batches" not in name}
    assert same(safetensors.torch.load_file(converted_from(tmp_path, old)), weights)


def test_views_into_one_storage_are_written_apart(tmp_path):
    base = torch.arange(12.0)
    weights = {"a": base[:6].reshape(2, 3).t(), "b": base[3:9], "c": base[0]}
    write_weights(tmp_path / "a", weights, {})
    assert same(safetensors.torch.load_file(tmp_path / "a"), weights)
    assert TensorFile(tmp_path / "a").array("c").shape == ()


def test_missing_left_over_and_misshapen_keys_are_listed_and_shortened(tmp_path):
    weights = network_weights()
    weights["layer0.0.weight"] = torch.ones(4, 1, 3, 3)
    missing = [name for name in weights if name.startswith("layer1.0.conv")]
    for name in missing:
        del weights[name]
    weights |= {f"extra.{n}": torch.ones(()) for n in range(6)}
    sentence = misfit(tmp_path, weights)
    shown = [name for name in missing if "num_batches" not in name]
    assert f"missing: {', '.join(shown[:4])} and {len(shown) - 4} more;" in sentence
    assert "left over: extra.0, extra.1, extra.2, extra.3 and 2 more;" in sentence
    assert "of another shape: layer0.0.weight (has 4x1x3x3, needs 4x3x3x3))" in sentence
    assert sentence.endswith(
        ": correct the family, the arch or the number of classes, or `image_size` of the data set."
    )
    assert "source.pth does not fit the model" in sentence


@pytest.mark.parametrize("outer", ["model", "backbone", "net.encoder", "a.b.c", "module.model"])
def test_what_stands_before_every_name_is_taken_off(tmp_path, outer):
    for network in (NETWORK, VIT):
        weights = network_weights(network)
        wrapped = {f"{outer}.{name}": value for name, value in weights.items()}
        target = converted_from(tmp_path, {"state_dict": wrapped}, network)
        assert same(safetensors.torch.load_file(target), weights)


def test_foreign_names_may_have_something_before_them_too(tmp_path):
    arch = {"patch_size": 4, "window_size": 2, "embed_dim": 8, "depths": [1, 1]}
    network = VIT | {"family": "swin", "arch": arch | {"num_heads": [1, 1]}}
    weights = network_weights(network)
    older = {
        "model." + re.sub(r"^layers\.1\.downsample", "layers.0.downsample", name): value
        for name, value in weights.items()
    }
    assert same(safetensors.torch.load_file(converted_from(tmp_path, older, network)), weights)


@pytest.mark.parametrize(
    ("before", "dropped", "beside", "size", "said"),
    [
        ("", (), {}, 64, "of another shape: pos_embed (has 1x17x24, needs 1x65x24)): correct the"),
        ("model.", (), {"loss.weight": torch.ones(10)}, 32, "left over: loss.weight): give their"),
        # Names that would become the same stay as they are.
        ("backbone.", (), {"head.weight": torch.ones(10, 24)}, 32, "missing: cls_token"),
        # More than the classifier is missing.
        ("", ("head", "norm"), {}, 32, "missing: norm.weight, norm.bias, head.weight, head.bias"),
    ],
)
def test_weights_of_a_vit_that_do_not_fit(tmp_path, before, dropped, beside, size, said):
    kept = {n: each for n, each in network_weights(VIT).items() if not n.startswith(dropped)}
    named = {f"{before}{name}": value for name, value in kept.items()}
    sentence = misfit(tmp_path, named | beside, {**VIT, "image_size": size})
    assert f"source.pth does not fit the model ({said}" in sentence


@pytest.mark.parametrize("outer", ["", "backbone."])
@pytest.mark.parametrize(
    ("network", "classifier"),
    [
        (VIT, "head.weight, head.bias"),
        (NETWORK, "classifier.0.dense.weight, classifier.0.dense.bias"),
    ],
)
def test_a_missing_classifier_is_refused(tmp_path, network, classifier, outer):
    whole_network = network_weights(network)
    body = {f"{outer}{n}": value for n, value in whole_network.items() if n not in classifier}
    assert len(body) == len(whole_network) - 2
    sentence = misfit(tmp_path, body, network)
    assert f"has no classifier that fits the model (missing: {classifier}):" in sentence
    assert "give `classes: null` to the model if only its feature maps are looked at" in sentence
    # Of a network that was trained to fill in its images.
    decoder = body | {f"{outer}decoder.weight": torch.ones(3)}
    assert f"; left over: {outer}decoder.weight):" in misfit(tmp_path, decoder, network)


@pytest.mark.parametrize("network", [NETWORK, VIT])
def test_a_network_without_a_classifier_is_what_lies_before_it(tmp_path, capsys, network):
    network, whole_network = {**network, "classes": None}, network_weights(network)
    model = find_family(network["family"]).build(network["arch"], 10, 32)
    model.load_state_dict(whole_network)
    head = model.head if network["family"] == "vit" else model.classifier[0].dense
    body = {n: value for n, value in whole_network.items() if "head" not in n and "dense" not in n}
    images = torch.randn(2, 3, 32, 32)
    seen = []
    head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model.eval()(images)
    for stored in (whole_network, body):
        target = converted_from(tmp_path, stored, network)
        assert same(safetensors.torch.load_file(target), body)
        assert TensorFile(target).metadata["classes"] == "null"
        assert torch.equal(load_converted_model(target, network)(images), seen[0])
        # What the file has and the network has not is reported.
        reported = "holds what the network has no use for: " in capsys.readouterr().out
        assert reported == (stored is whole_network)


def test_the_first_weights_that_fit_are_read(tmp_path, capsys):
    # The teacher of a distillation is no average but a network of its own.
    teacher = {"fc.weight": torch.ones(3)}
    both = {"teacher": teacher, "student": network_weights()}
    target = converted_from(tmp_path, both)
    assert same(safetensors.torch.load_file(target), network_weights())
    assert TensorFile(target).metadata["weights"] == "student"
    assert "those in 'student' are read, those in 'teacher' are not." in capsys.readouterr().out
    # Where none fits, what is said is of the first.
    sentence = misfit(tmp_path, {"teacher": teacher, "student": dict(teacher)})
    assert "left over: fc.weight; the file holds 'teacher' (1 weight), 'student' " in sentence
    assert "(1 weight), of which `checkpoint.key` chooses):" in sentence


def test_what_dino_saves_is_converted(tmp_path):
    """As its training code saves it: a student and a teacher, each with a head of its own."""
    network = {**VIT, "classes": None}
    body = {n: value for n, value in network_weights(VIT).items() if "head" not in n}
    heads = {"head.mlp.0.weight": torch.ones(4, 24), "head.last_layer.weight_g": torch.ones(4, 1)}

    def part(scale: float) -> dict[str, torch.Tensor]:
        backbone = {f"backbone.{name}": value * scale for name, value in body.items()}
        return {f"module.{name}": value for name, value in (backbone | heads).items()}

    dino = {"student": part(1.0), "teacher": part(2.0), "optimizer": {"state": {}}, "epoch": 3}
    sentence = misfit(tmp_path, dino, network)
    assert "(left over: module.head.mlp.0.weight, module.head.last_layer.weight_g; " in sentence
    assert "give their names, or patterns of them, to `checkpoint.ignore`" in sentence
    for key, scale in ((None, 2.0), ("teacher", 2.0), ("student", 1.0)):
        target = converted_from(tmp_path, dino, network, key=key, ignore=["module.head.*"])
        expected = {name: value * scale for name, value in body.items()}
        assert same(safetensors.torch.load_file(target), expected)
        assert TensorFile(target).metadata["weights"] == (key or "teacher")


def test_values_that_are_not_finite_are_refused(tmp_path):
    weights = network_weights()
    weights["layer0.0.weight"][0, 0, 0, 0] = float("nan")
    assert "holds values in layer0.0.weight that are not finite" in misfit(tmp_path, weights)


@pytest.mark.parametrize("kind", [torch.int8, torch.bool, torch.int32])
def test_weights_that_are_no_numbers_with_a_point_are_refused(tmp_path, kind):
    weights = network_weights()
    name = next(name for name, tensor in weights.items() if tensor.ndim == 4)
    sentence = misfit(tmp_path, {**weights, name: (100 * weights[name]).to(kind)})
    assert f"'{name}' as {str(kind).removeprefix('torch.')}" in sentence


def test_a_wrong_digest_is_refused(tmp_path):
    source = saved(tmp_path / "source.pth", network_weights())
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    options: dict[str, Any] = {"label": "ResNet", "origin": "a"}
    convert(source, NETWORK, tmp_path / "right", **options, sha256=digest.upper())
    with pytest.raises(VitscopeError, match=rf"SHA-256 {digest} where the study says 0{{64}}: it"):
        convert(source, NETWORK, tmp_path / "wrong", **options, sha256="0" * 64)
    assert not (tmp_path / "wrong").exists()


@pytest.mark.parametrize("name", ARCHS)
def test_a_published_layout_comes_from_the_web_to_a_model(tmp_path, monkeypatch, golden, name):
    monkeypatch.setenv("no_proxy", "*")
    served = saved(tmp_path / "served.pth.tar", {"state_dict": golden.state_dict(name)})
    family, arch = ARCHS[name]
    network = described() | {"family": family, "arch": arch, "classes": 100}
    source, lock = tmp_path / "source", tmp_path / "paper.lock.yaml"
    with running_site() as site:
        checkpoint = {"url": site.at(f"/{name}.pth.tar", whole(served.read_bytes()))}
        weight_sources.download_checkpoint(checkpoint, source, lock, label=name)
    origin = weight_sources.describe_source(checkpoint)
    convert(source, network, tmp_path / "model", label=name, origin=origin)
    model = load_converted_model(tmp_path / "model", network)

    digest = hashlib.sha256(served.read_bytes()).hexdigest()
    assert find_lock_entry(lock, checkpoint["url"]).sha256 == digest
    assert TensorFile(tmp_path / "model").metadata["source_sha256"] == digest
    assert TensorFile(tmp_path / "model").metadata["source"] == checkpoint["url"]
    published = torch.load(served, weights_only=True)["state_dict"]
    assert same(dict(model.state_dict()), translate(published, model).weights)
    if name in ("resnet_50", "vit_ti"):
        count = golden.expected[name]["params"]
        assert TensorFile(tmp_path / "model").metadata["parameters"] == str(count)


def test_a_loaded_model_is_the_one_that_was_saved(converted):
    original = find_family("resnet").build(NETWORK["arch"], 10, 32)
    original.load_state_dict(network_weights())
    model = load_converted_model(converted, NETWORK)
    assert not model.training
    images = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        assert torch.equal(model(images), original.eval()(images))


def test_loading_what_does_not_fit_or_is_damaged_is_refused(converted):
    assert "does not fit the model" in refusal(
        load_converted_model, converted, {**NETWORK, "classes": 11}
    )
    converted.write_bytes(converted.read_bytes()[:-1])
    assert "resnet.safetensors is damaged" in refusal(load_converted_model, converted, NETWORK)
