"""Checkpoints: what is read, what is refused, and that nothing in a file is ever run."""

import argparse
import hashlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from tests.helpers.golden import ARCHS
from tests.helpers.web import running_site, whole
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.networks import weight_sources as origins
from vitscope.networks.checkpoints import (
    convert,
    load_model,
    read_foreign,
    read_origin,
    write_weights,
)
from vitscope.networks.empty import build_empty
from vitscope.networks.families import get
from vitscope.web.lockfile import known

ROOT = Path(__file__).parents[2]
WEIGHTS = {"fc.weight": torch.arange(6.0).reshape(2, 3), "fc.bias": torch.tensor([1.0, 2.0])}
NETWORK = {
    "family": "resnet",
    "arch": {"block": "basic", "blocks": [1, 1, 1, 1], "width": 4},
    "classes": 10,
    "image_size": 32,
}


def saved(path: Path, value: object, **options: Any) -> Path:
    torch.save(value, path, **options)
    return path


def network_weights() -> dict[str, torch.Tensor]:
    """Return random weights that fit NETWORK."""
    torch.manual_seed(0)
    arch, classes, size = NETWORK["arch"], NETWORK["classes"], NETWORK["image_size"]
    return get("resnet").build(arch, classes, size).state_dict()


def same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> bool:
    return found.keys() == expected.keys() and all(
        torch.equal(found[name], expected[name]) for name in expected
    )


def refusal(path: Path) -> str:
    """Return the one sentence with which a file is refused."""
    with pytest.raises(VitscopeError) as caught:
        read_foreign(path, "ViT")
    sentence = str(caught.value)
    assert sentence.startswith(f"ViT: {path} ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def misfit(tmp_path: Path, weights: object, network: dict[str, Any] = NETWORK) -> str:
    """Return the one sentence with which a conversion is refused; nothing may be left."""
    source = saved(tmp_path / "source.pth", weights)
    with pytest.raises(VitscopeError) as caught:
        convert(source, network, tmp_path / "new" / "vit", label="ViT", origin="source.pth")
    assert list((tmp_path / "new").glob("*")) == []
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_files_of_torch_are_read(tmp_path, zipped):
    options = {"_use_new_zipfile_serialization": zipped}
    path = saved(tmp_path / "vit.pth.tar", WEIGHTS, **options)
    foreign = read_foreign(path, "ViT")
    assert same(foreign.weights, WEIGHTS)
    assert (foreign.place, foreign.others) == ("", ())
    assert foreign.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_safetensors_are_read_whatever_their_name(tmp_path):
    safetensors.torch.save_file(WEIGHTS, tmp_path / "vit.pth")
    assert same(read_foreign(tmp_path / "vit.pth", "ViT").weights, WEIGHTS)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda w: {"state_dict": w, "epoch": 3, "optimizer": {"state": {}}},
        lambda w: {"model": w, "args": argparse.Namespace(lr=0.1, name="vit")},
        lambda w: {"model": {"fc.bias": torch.zeros(2)}, "model_ema": w},
        lambda w: {"state_dict": {"fc.bias": torch.zeros(2)}, "state_dict_ema": w},
        lambda w: {"ema": {"model": w}},
        lambda w: {"model": w, "model_ema": None},
        lambda w: {f"module.{name}": value for name, value in w.items()},
        lambda w: {f"_orig_mod.module.{name}": value for name, value in w.items()},
        lambda w: {f"module._orig_mod.{name}": value for name, value in w.items()},
        lambda w: {"state_dict": {f"module.{name}": value for name, value in w.items()}},
        lambda w: w | {"epoch": 3, 7: torch.zeros(1)},
        lambda w: {name: nn.Parameter(value) for name, value in w.items()},
    ],
)
def test_wrappers_and_prefixes_are_taken_off(tmp_path, wrap):
    weights = read_foreign(saved(tmp_path / "vit.pth", wrap(WEIGHTS)), "ViT").weights
    assert same(weights, WEIGHTS)
    assert not any(value.requires_grad for value in weights.values())


@pytest.mark.parametrize(
    ("wrap", "place", "others"),
    [
        (lambda w: {"state_dict": w}, "state_dict", ()),
        # As timm's training saves a model and its average.
        (
            lambda w: {"arch": "vit", "state_dict": w, "state_dict_ema": w, "optimizer": {}},
            "state_dict_ema",
            ("state_dict",),
        ),
        (lambda w: {"model": w, "model_ema": w}, "model_ema", ("model",)),
        (lambda w: {"ema": {"model": w}, "state_dict": w}, "ema.model", ("state_dict",)),
        (lambda w: {"state_dict": {"model": w, "ema": w}}, "state_dict.ema", ("state_dict.model",)),
        (lambda w: {"model": w, "model_ema": None}, "model", ()),
        # Settings of the model are none of its weights.
        (lambda w: {"state_dict": w, "model": {"depth": 12}}, "state_dict", ()),
    ],
)
def test_the_place_of_the_weights_in_the_file_is_known(tmp_path, wrap, place, others):
    foreign = read_foreign(saved(tmp_path / "vit.pth", wrap(WEIGHTS)), "ViT")
    assert (foreign.place, foreign.others) == (place, others)


def test_a_prefix_that_is_not_on_every_key_is_part_of_the_name(tmp_path):
    weights = {"module.weight": torch.ones(1), "head.weight": torch.ones(1)}
    assert same(read_foreign(saved(tmp_path / "a.pth", weights), "ViT").weights, weights)


def test_a_file_that_holds_itself_ends(tmp_path):
    endless: dict[str, object] = {}
    endless["model"] = endless
    assert "holds no weights" in refusal(saved(tmp_path / "a.pth", endless))


class Runs:
    """What runs a command as soon as it is unpickled."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.witness}",)


def malicious_files(folder: Path, witness: Path) -> list[Path]:
    """Write the same attack in every format that torch.load knows."""
    attack = {"state_dict": {"fc.weight": torch.ones(2), "fc.bias": Runs(witness)}}
    new = saved(folder / "zip.pth", attack)
    old = saved(folder / "legacy.pth", attack, _use_new_zipfile_serialization=False)
    plain = folder / "plain.pkl"
    plain.write_bytes(pickle.dumps(Runs(witness), protocol=2))
    tar = folder / "oldest.tar"
    with tarfile.open(tar, "w") as archive:
        for name in ("sys_info", "pickle", "tensors", "storages"):
            data = pickle.dumps(Runs(witness), protocol=2)
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return [new, old, plain, tar]


def test_a_malicious_file_runs_nothing(tmp_path):
    witness = tmp_path / "it-ran"
    files = malicious_files(tmp_path, witness)
    for path in files:
        refusal(path)
        assert not witness.exists()
    for path in files[:3]:
        assert f"holds {os.system.__module__}.system, which could run code" in refusal(path)
        assert "torch.save(model.state_dict(), path) or as safetensors" in refusal(path)
    # The attack is real: a reader that trusts the file runs it.
    torch.load(files[0], weights_only=False)
    assert witness.exists()


def test_a_malicious_file_does_not_convert(tmp_path):
    witness = tmp_path / "it-ran"
    assert "could run code" in misfit(tmp_path, {"fc.bias": Runs(witness)})
    assert not witness.exists()


def test_a_whole_model_is_refused(tmp_path):
    sentence = refusal(saved(tmp_path / "a.pth", nn.Linear(2, 2)))
    assert "holds torch.nn.modules.linear.Linear, which could run code" in sentence


def test_a_missing_file_and_a_folder_are_told(tmp_path):
    assert "does not exist: give the path of a checkpoint file" in refusal(tmp_path / "none")
    assert "is a folder: give the path of a checkpoint file" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path):
    path = saved(tmp_path / "a.pth", WEIGHTS)
    path.chmod(0)
    assert "cannot be read (Permission denied): make it readable" in refusal(path)


def test_an_empty_file_is_told(tmp_path):
    (tmp_path / "a.pth").touch()
    assert "is empty: get it again" in refusal(tmp_path / "a.pth")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<!DOCTYPE html><title>Not Found</title>", "is a web page and not a checkpoint"),
        ("version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer and not"),
    ],
)
def test_what_stands_in_for_a_file_is_told(tmp_path, text, told):
    (tmp_path / "a.pth").write_text(text)
    assert told in refusal(tmp_path / "a.pth")


def truncations(folder: Path) -> list[Path]:
    """Write checkpoints of each format, cut off at several places."""
    big = {f"{n}.weight": torch.rand(64, 64) for n in range(4)}
    safetensors.torch.save_file(big, folder / "safetensors")
    saved(folder / "zip", big)
    saved(folder / "legacy", big, _use_new_zipfile_serialization=False)
    cuts = []
    for whole_file in sorted(folder.iterdir()):
        data = whole_file.read_bytes()
        for end in (1, 9, 100, len(data) // 2, len(data) - 1):
            cuts.append(folder / f"{whole_file.name}-{end}")
            cuts[-1].write_bytes(data[:end])
    return cuts


def test_truncated_files_are_told(tmp_path):
    cuts = truncations(tmp_path)
    assert len(cuts) == 15
    for path in cuts:
        sentence = refusal(path)
        assert "is damaged or is not a checkpoint (a file of torch.save or safetensors)" in sentence


def test_files_of_another_kind_are_told(tmp_path):
    (tmp_path / "text").write_text("weights: none\n")
    (tmp_path / "random").write_bytes(np.random.default_rng(0).bytes(10_000))
    (tmp_path / "json").write_text('{"weights": [1, 2, 3]}')
    np.savez(tmp_path / "numpy.npz", weight=np.ones(3))
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a.txt", "weights")
    for path in sorted(tmp_path.iterdir()):
        assert "is damaged or is not a checkpoint" in refusal(path)


@pytest.mark.parametrize("value", [{}, [], torch.ones(3), {"epoch": 3}, {"model": {"lr": 0.1}}])
def test_files_without_weights_are_told(tmp_path, value):
    sentence = refusal(saved(tmp_path / "a.pth", value))
    assert "holds no weights: give the file of a state dict" in sentence


def test_sparse_tensors_are_not_weights(tmp_path):
    path = saved(tmp_path / "a.pth", {"a": torch.eye(3).to_sparse()})
    assert "holds no weights" in refusal(path)


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    source = saved(tmp_path / "source.pth", {"state_dict": network_weights()})
    target = tmp_path / "out" / "resnet.safetensors"
    convert(source, NETWORK, target, label="ResNet", origin="https://host/source.pth")
    return target


def test_a_conversion_keeps_every_value_and_says_where_it_is_from(converted, tmp_path):
    assert same(safetensors.torch.load_file(converted), network_weights())
    model = build_empty("resnet", NETWORK["arch"], 10, 32)
    assert read_origin(converted) == {
        "arch": json.dumps(NETWORK["arch"], sort_keys=True),
        "classes": "10",
        "family": "resnet",
        "image_size": "32",
        "parameters": str(sum(parameter.numel() for parameter in model.parameters())),
        "source": "https://host/source.pth",
        "source_sha256": hashlib.sha256((tmp_path / "source.pth").read_bytes()).hexdigest(),
        "weights": "state_dict",
    }
    assert list(converted.parent.iterdir()) == [converted]


def test_a_converted_file_converts_to_the_same_weights(converted, tmp_path, capsys):
    again = tmp_path / "again.safetensors"
    convert(converted, NETWORK, again, label="ResNet", origin="resnet.safetensors")
    assert same(safetensors.torch.load_file(again), network_weights())
    assert "weights" not in read_origin(again)
    assert capsys.readouterr().out == ""


def test_the_choice_of_averaged_weights_is_told(tmp_path, capsys):
    averaged = {name: value * 2 for name, value in network_weights().items()}
    both = {"state_dict": network_weights(), "state_dict_ema": averaged}
    source, target = saved(tmp_path / "both.pth", both), tmp_path / "resnet"
    convert(source, NETWORK, target, label="ResNet", origin="a")
    assert same(safetensors.torch.load_file(target), averaged)
    assert read_origin(target)["weights"] == "state_dict_ema"
    assert capsys.readouterr().out == (
        f"ResNet: {source} holds weights more than once: those in 'state_dict_ema' are read, "
        f"those in 'state_dict' are not.\n"
    )


def test_conversions_in_other_processes_give_the_same_bytes(converted, tmp_path):
    code = (
        "import json, sys; from pathlib import Path; from vitscope.checkpoints import convert;"
        "convert(Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]), label='ResNet',"
        " origin='https://host/source.pth')"
    )
    for seed in "12":
        target = tmp_path / seed
        arguments = [str(tmp_path / "source.pth"), json.dumps(NETWORK), str(target)]
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        assert target.read_bytes() == converted.read_bytes()


def test_the_order_of_the_settings_does_not_matter(converted, tmp_path):
    arch = dict(reversed(NETWORK["arch"].items()))
    source, target = tmp_path / "source.pth", tmp_path / "again"
    origin = "https://host/source.pth"
    convert(source, {**NETWORK, "arch": arch}, target, label="ResNet", origin=origin)
    assert target.read_bytes() == converted.read_bytes()


def test_weights_of_another_precision_get_the_types_of_the_model(tmp_path):
    weights = network_weights()
    half = {
        name: value.half() if value.is_floating_point() else value
        for name, value in weights.items()
    }
    target = tmp_path / "resnet"
    source = saved(tmp_path / "source.pth", half)
    convert(source, NETWORK, target, label="ResNet", origin="a")
    found = safetensors.torch.load_file(target)
    assert same(found, {name: half[name].to(value.dtype) for name, value in weights.items()})


def test_views_into_one_storage_are_written_apart(tmp_path):
    base = torch.arange(12.0)
    weights = {"a": base[:6].reshape(2, 3).t(), "b": base[3:9], "c": base[0]}
    write_weights(tmp_path / "a", weights, {})
    assert same(safetensors.torch.load_file(tmp_path / "a"), weights)
    assert TensorFile(tmp_path / "a").array("c").shape == ()


def test_counters_of_old_checkpoints_may_be_missing(tmp_path):
    weights = network_weights()
    old = {name: value for name, value in weights.items() if "num_batches" not in name}
    target = tmp_path / "resnet"
    source = saved(tmp_path / "source.pth", old)
    convert(source, NETWORK, target, label="ResNet", origin="a")
    assert same(safetensors.torch.load_file(target), weights)


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


VIT = {
    "family": "vit",
    "arch": {"patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2},
    "classes": 10,
    "image_size": 32,
}


def vit_weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return get("vit").build(VIT["arch"], VIT["classes"], VIT["image_size"]).state_dict()


def test_another_image_size_is_told(tmp_path):
    sentence = misfit(tmp_path, vit_weights(), {**VIT, "image_size": 64})
    assert "(of another shape: pos_embed (has 1x17x24, needs 1x65x24))" in sentence
    assert "`image_size` of the data set" in sentence


@pytest.mark.parametrize("outer", ["model", "backbone", "net.encoder", "a.b.c", "module.model"])
def test_what_stands_before_every_name_is_taken_off(tmp_path, outer):
    for network, weights in ((NETWORK, network_weights()), (VIT, vit_weights())):
        wrapped = {f"{outer}.{name}": value for name, value in weights.items()}
        source, target = saved(tmp_path / "source.pth", {"state_dict": wrapped}), tmp_path / "model"
        convert(source, network, target, label="Model", origin="a")
        assert same(safetensors.torch.load_file(target), weights)


def test_foreign_names_may_have_something_before_them_too(tmp_path):
    network = {
        "family": "swin",
        "arch": {
            "patch_size": 4,
            "window_size": 2,
            "embed_dim": 8,
            "depths": [1, 1],
            "num_heads": [1, 1],
        },
        "classes": 10,
        "image_size": 32,
    }
    weights = get("swin").build(network["arch"], 10, 32).state_dict()
    older = {
        "model." + re.sub(r"^layers\.1\.downsample", "layers.0.downsample", name): value
        for name, value in weights.items()
    }
    source, target = saved(tmp_path / "source.pth", older), tmp_path / "swin"
    convert(source, network, target, label="Swin", origin="a")
    assert same(safetensors.torch.load_file(target), weights)


def test_what_stands_beside_the_model_is_left_over(tmp_path):
    wrapped = {f"model.{name}": value for name, value in vit_weights().items()}
    sentence = misfit(tmp_path, wrapped | {"criterion.weight": torch.ones(10)}, VIT)
    assert "does not fit the model (left over: criterion.weight):" in sentence


def test_names_that_would_become_the_same_stay_as_they_are(tmp_path):
    wrapped = {f"backbone.{name}": value for name, value in vit_weights().items()}
    sentence = misfit(tmp_path, wrapped | {"head.weight": torch.ones(10, 24)}, VIT)
    assert "missing: cls_token" in sentence


@pytest.mark.parametrize("outer", ["", "backbone."])
@pytest.mark.parametrize(
    ("network", "weights", "classifier"),
    [
        (VIT, vit_weights, "head.weight, head.bias"),
        (NETWORK, network_weights, "classifier.0.dense.weight, classifier.0.dense.bias"),
    ],
)
def test_a_missing_classifier_is_told(tmp_path, network, weights, classifier, outer):
    whole_network = weights()
    body = {f"{outer}{n}": value for n, value in whole_network.items() if n not in classifier}
    assert len(body) == len(whole_network) - 2
    sentence = misfit(tmp_path, body, network)
    assert f"has no classifier that fits the model (missing: {classifier}):" in sentence
    assert "measurements need one for now" in sentence
    # Of a network that was trained to fill in its images.
    decoder = body | {f"{outer}decoder.weight": torch.ones(3)}
    assert "; left over: decoder.weight):" in misfit(tmp_path, decoder, network)


def test_more_than_the_classifier_that_is_missing_is_no_case_of_its_own(tmp_path):
    body = {
        name: value for name, value in vit_weights().items() if name[:4] not in ("head", "norm")
    }
    sentence = misfit(tmp_path, body, VIT)
    assert "does not fit the model (missing: norm.weight, norm.bias, head.weight" in sentence


def test_another_number_of_classes_is_told(tmp_path):
    sentence = misfit(tmp_path, network_weights(), {**NETWORK, "classes": 100})
    assert "classifier.0.dense.weight (has 10x32, needs 100x32)" in sentence
    assert "missing" not in sentence
    assert "left over" not in sentence


def test_values_that_are_not_finite_are_told(tmp_path):
    weights = network_weights()
    weights["layer0.0.weight"][0, 0, 0, 0] = float("nan")
    assert "holds values in layer0.0.weight that are not finite" in misfit(tmp_path, weights)


def test_a_wrong_digest_is_told(tmp_path):
    source = saved(tmp_path / "source.pth", network_weights())
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    options: dict[str, Any] = {"label": "ResNet", "origin": "a"}
    convert(source, NETWORK, tmp_path / "right", **options, sha256=digest.upper())
    with pytest.raises(VitscopeError, match=rf"SHA-256 {digest} where the study says 0{{64}}: it"):
        convert(source, NETWORK, tmp_path / "wrong", **options, sha256="0" * 64)
    assert not (tmp_path / "wrong").exists()


def test_a_loaded_model_is_the_one_that_was_saved(converted):
    original = get("resnet").build(NETWORK["arch"], 10, 32)
    original.load_state_dict(network_weights())
    model = load_model(converted, NETWORK)
    assert not model.training
    images = torch.rand(2, 3, 32, 32)
    with torch.inference_mode():
        assert torch.equal(model(images), original.eval()(images))


def test_loading_what_does_not_fit_is_told(converted):
    with pytest.raises(VitscopeError, match="does not fit the model"):
        load_model(converted, {**NETWORK, "classes": 11})


def test_loading_a_damaged_file_is_told(converted):
    converted.write_bytes(converted.read_bytes()[:-1])
    with pytest.raises(VitscopeError, match=r"resnet.safetensors is damaged"):
        load_model(converted, NETWORK)


@pytest.mark.parametrize("name", ARCHS)
def test_a_published_layout_comes_from_the_web_to_a_model(tmp_path, monkeypatch, golden, name):
    script = golden.shared / "golden" / "make_checkpoint.py"
    monkeypatch.setenv("no_proxy", "*")
    served = tmp_path / "served.pth.tar"
    subprocess.run([sys.executable, str(script), name, str(served)], check=True)
    family, arch = ARCHS[name]
    network = {"family": family, "arch": arch, "classes": 100, "image_size": 32}
    source, lock = tmp_path / "source", tmp_path / "paper.lock.yaml"
    with running_site() as site:
        checkpoint = {"url": site.at(f"/{name}.pth.tar", whole(served.read_bytes()))}
        origins.download(checkpoint, source, lock, label=name)
    origin = origins.described(checkpoint)
    convert(source, network, tmp_path / "model", label=name, origin=origin)
    model = load_model(tmp_path / "model", network)

    digest = hashlib.sha256(served.read_bytes()).hexdigest()
    assert known(lock, checkpoint["url"]).sha256 == digest
    assert read_origin(tmp_path / "model")["source_sha256"] == digest
    assert read_origin(tmp_path / "model")["source"] == checkpoint["url"]
    published = torch.load(served, weights_only=True)["state_dict"]
    expected = get(family).translate(published, model)
    assert same(dict(model.state_dict()), expected)
    if name in ("resnet_50", "vit_ti"):
        count = golden.expected[name]["params"]
        assert read_origin(tmp_path / "model")["parameters"] == str(count)
