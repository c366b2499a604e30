import argparse
import hashlib
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from tests.helpers import refusals
from tests.helpers.checkpoints import Runs, same, saved
from vitscope.networks.checkpoints.foreign import Foreign, read_foreign

WEIGHTS = {"fc.weight": torch.arange(6.0).reshape(2, 3), "fc.bias": torch.tensor([1.0, 2.0])}


def places(foreign: Foreign) -> list[str]:
    """Return where in a file weights are, in the order in which they are tried."""
    return [place.key for place in foreign.places]


def refusal(path: Path, **options: Any) -> str:
    sentence = refusals.refusal(read_foreign, path, "ViT", **options)
    assert sentence.startswith(f"ViT: {path} ")
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_files_of_torch_are_read(tmp_path, zipped):
    options = {"_use_new_zipfile_serialization": zipped}
    path = saved(tmp_path / "vit.pth.tar", WEIGHTS, **options)
    foreign = read_foreign(path, "ViT")
    assert places(foreign) == [""]
    assert same(foreign.places[0].weights, WEIGHTS)
    assert foreign.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    # So are safetensors, whatever their name.
    safetensors.torch.save_file(WEIGHTS, path)
    assert same(read_foreign(path, "ViT").places[0].weights, WEIGHTS)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda w: {"state_dict": w, "epoch": 3, "optimizer": {"state": {}}},
        lambda w: {"model": w, "args": argparse.Namespace(lr=0.1, name="vit")},
        lambda w: {f"module.{name}": value for name, value in w.items()},
        lambda w: {f"_orig_mod.module.{name}": value for name, value in w.items()},
        lambda w: {f"module._orig_mod.{name}": value for name, value in w.items()},
        lambda w: {"state_dict": {f"module.{name}": value for name, value in w.items()}},
        lambda w: w | {"epoch": 3, 7: torch.zeros(1)},
        lambda w: {name: nn.Parameter(value) for name, value in w.items()},
    ],
)
def test_wrappers_and_prefixes_are_taken_off(tmp_path, wrap):
    weights = read_foreign(saved(tmp_path / "vit.pth", wrap(WEIGHTS)), "ViT").places[0].weights
    assert same(weights, WEIGHTS)
    assert not any(value.requires_grad for value in weights.values())


@pytest.mark.parametrize(
    ("wrap", "keys"),
    [
        (lambda w: {"state_dict": w}, ["state_dict"]),
        # As timm's training saves a model and its average.
        (
            lambda w: {"arch": "vit", "state_dict": w, "state_dict_ema": {**w}, "optimizer": {}},
            ["state_dict_ema", "state_dict"],
        ),
        (lambda w: {"model": w, "model_ema": {**w}}, ["model_ema", "model"]),
        (lambda w: {"ema": {"model": w}, "state_dict": {**w}}, ["ema.model", "state_dict"]),
        (
            lambda w: {"state_dict": {"model": w, "ema": {**w}}},
            ["state_dict.ema", "state_dict.model"],
        ),
        (lambda w: {"model": w, "model_ema": None}, ["model"]),
        # Settings of the model are none of its weights.
        (lambda w: {"state_dict": w, "model": {"depth": 12}}, ["state_dict"]),
        (lambda w: {"model": {"depth": 12}, "net": w}, ["net"]),
        (lambda w: {"model_state_dict": w, "epoch": 3}, ["model_state_dict"]),
        (lambda w: {"params": w, "params_ema": {**w}}, ["params_ema", "params"]),
        # As DINO saves what it trains.
        (
            lambda w: (
                {
                    name: {f"module.backbone.{key}": value for key, value in w.items()}
                    for name in ("student", "teacher")
                }
                | {"optimizer": {"state": {0: {"step": 3}}}}
            ),
            ["teacher", "student"],
        ),
        # The same weights under two names are there once.
        (lambda w: {"model": w, "net": w}, ["model"]),
    ],
)
def test_the_places_of_the_weights_in_the_file_are_known(tmp_path, wrap, keys):
    assert places(read_foreign(saved(tmp_path / "vit.pth", wrap(WEIGHTS)), "ViT")) == keys


OTHERS = {"fc.weight": torch.zeros(2, 3), "fc.bias": torch.zeros(2)}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mine", {"mine": WEIGHTS, "state_dict": OTHERS}),
        ("a.b", {"a": {"b": WEIGHTS, "model": OTHERS}, "model": OTHERS}),
        ("a.b", {"a.b": WEIGHTS, "a": OTHERS}),
        ("a.b.c", {"a.b": {"c": WEIGHTS}, "a": OTHERS}),
        ("student", {"student": WEIGHTS, "teacher": OTHERS}),
        # What is found without a key is found within its entry too.
        ("a", {"a": {"state_dict": WEIGHTS, "epoch": 3}, "model": OTHERS}),
        # A file without entries has names that begin alike.
        ("net", {f"net.{name}": value for name, value in WEIGHTS.items()} | OTHERS),
        ("a.net", {"a": {f"net.{name}": value for name, value in WEIGHTS.items()}}),
    ],
)
def test_a_key_says_which_entry_holds_the_weights(tmp_path, key, value):
    foreign = read_foreign(saved(tmp_path / "vit.pth", value), "ViT", key=key)
    assert same(foreign.places[0].weights, WEIGHTS)
    assert foreign.places[0].key.startswith(key)


def test_a_key_of_a_file_of_safetensors_is_what_names_begin_with(tmp_path):
    named = {f"visual.{name}": value for name, value in WEIGHTS.items()}
    safetensors.torch.save_file(named | {"text.weight": torch.ones(1)}, tmp_path / "clip")
    foreign = read_foreign(tmp_path / "clip", "ViT", key="visual")
    assert same(foreign.places[0].weights, WEIGHTS)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "modle",
            {"model": WEIGHTS, "epoch": 3, "inner": {"net": OTHERS}},
            "has no entry 'modle': it holds 'model' (2 weights), 'epoch', 'inner', 'inner.net' "
            "(2 weights): correct `checkpoint.key`.",
        ),
        (
            "model.encoder",
            {"model": WEIGHTS},
            "has no entry 'model.encoder': it holds 'model' (2 weights): correct",
        ),
        (
            "nothing",
            {f"{n}.weight": torch.ones(1) for n in range(10)},
            "has no entry 'nothing': it holds '0.weight', '1.weight', '2.weight', '3.weight', "
            "'4.weight', '5.weight', '6.weight', '7.weight' and 2 more: correct `checkpoint.key`.",
        ),
        (
            "epoch",
            {"model": WEIGHTS, "epoch": 3},
            "holds no weights in its entry 'epoch': it holds 'model' (2 weights), 'epoch': say "
            "with `checkpoint.key` which entry is meant.",
        ),
        (
            None,
            {"mine": WEIGHTS, "epoch": 3},
            "holds no weights: it holds 'mine' (2 weights), 'epoch': say with `checkpoint.key`",
        ),
        (None, {"epoch": 3}, "holds no weights: it holds 'epoch': give the file of a state dict."),
    ],
)
def test_a_refusal_lists_what_a_file_holds(tmp_path, key, value, sentence):
    assert sentence in refusal(saved(tmp_path / "a.pth", value), key=key)


def test_names_that_match_a_pattern_are_left_out(tmp_path):
    heads = {"decoder.0.weight": torch.ones(1), "mask_token": torch.ones(1)}
    path = saved(tmp_path / "a.pth", {"model": WEIGHTS | heads})
    foreign = read_foreign(path, "ViT", ignore=["decoder.*", "mask_token"])
    assert same(foreign.places[0].weights, WEIGHTS)
    # Patterns are of names as they are in the file, whatever is taken off them later.
    named = {f"module.{name}": value for name, value in (WEIGHTS | heads).items()}
    foreign = read_foreign(
        saved(tmp_path / "b.pth", named), "ViT", ignore=["module.decoder.*", "*mask_token"]
    )
    assert same(foreign.places[0].weights, WEIGHTS)
    assert foreign.places[0].before == "module."


def test_what_is_left_out_may_be_anything_that_is_read(tmp_path):
    odd = {"odd": torch.zeros(2, dtype=torch.complex64), "x" * 600: torch.zeros(1)}
    path = saved(tmp_path / "a.pth", WEIGHTS | odd)
    assert "which no weights of a network are" in refusal(path)
    assert same(read_foreign(path, "ViT", ignore=["odd", "x*"]).places[0].weights, WEIGHTS)


def test_patterns_that_match_nothing_or_everything_are_refused(tmp_path):
    path = saved(tmp_path / "a.pth", WEIGHTS)
    sentence = refusal(path, ignore=["fc.bias", "decodr.*"])
    assert "has no name that matches 'decodr.*': it has fc.weight, fc.bias: correct" in sentence
    assert "has no weights that `checkpoint.ignore` leaves" in refusal(path, ignore=["*"])


def test_a_prefix_that_is_not_on_every_key_is_part_of_the_name(tmp_path):
    weights = {"module.weight": torch.ones(1), "head.weight": torch.ones(1)}
    assert same(read_foreign(saved(tmp_path / "a.pth", weights), "ViT").places[0].weights, weights)


def malicious_files(folder: Path, witness: Path) -> list[Path]:
    """Write the same attack in formats that torch.load knows; tests/security has the oldest too."""
    attack = {"state_dict": {"fc.weight": torch.ones(2), "fc.bias": Runs(witness)}}
    new = saved(folder / "zip.pth", attack)
    old = saved(folder / "legacy.pth", attack, _use_new_zipfile_serialization=False)
    plain = folder / "plain.pkl"
    plain.write_bytes(pickle.dumps(Runs(witness), protocol=2))
    return [new, old, plain]


def test_a_malicious_file_runs_nothing(tmp_path):
    witness = tmp_path / "it-ran"
    files = malicious_files(tmp_path, witness)
    for path in files:
        # Leaving out what would run does not make a file a safe one.
        refusal(path, ignore=["*bias"])
        refusal(path, key="state_dict")
        assert not witness.exists()
        assert f"holds {os.system.__module__}.system, which could run code" in refusal(path)
        assert "torch.save(model.state_dict(), path) or as safetensors" in refusal(path)
    # The attack is real: a reader that trusts the file runs it.
    torch.load(files[0], weights_only=False)
    assert witness.exists()


def test_a_whole_model_a_missing_file_and_a_folder_are_refused(tmp_path):
    sentence = refusal(saved(tmp_path / "a.pth", nn.Linear(2, 2)))
    assert "holds torch.nn.modules.linear.Linear, which could run code" in sentence
    assert "does not exist: give the path of a checkpoint file" in refusal(tmp_path / "none")
    assert "is a folder: give the path of a checkpoint file" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path = saved(tmp_path / "a.pth", WEIGHTS)
    path.chmod(0)
    assert "cannot be read (Permission denied): make it readable" in refusal(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: get it again"),
        ("<!DOCTYPE html><title>Not Found</title>", "is a web page and not a checkpoint"),
        ("weights: none\n", "is a text and not a checkpoint"),
        ('{"weights": [1, 2, 3]}', "is an answer in JSON and not a checkpoint"),
        ("version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer and not"),
    ],
)
def test_what_stands_in_for_a_file_is_refused(tmp_path, text, message):
    (tmp_path / "a.pth").write_text(text)
    assert message in refusal(tmp_path / "a.pth")


def test_truncated_files_are_refused(tmp_path):
    big = {f"{n}.weight": torch.rand(64, 64) for n in range(4)}
    safetensors.torch.save_file(big, tmp_path / "safetensors")
    saved(tmp_path / "zip", big)
    saved(tmp_path / "legacy", big, _use_new_zipfile_serialization=False)
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        for end in (9, 100, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:end])
            said = "is damaged or is not a checkpoint (a file of torch.save or safetensors)"
            assert said in refusal(path)


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "random").write_bytes(np.random.default_rng(0).bytes(10_000))
    np.savez(tmp_path / "numpy.npz", weight=np.ones(3))
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a.txt", "weights")
    for path in sorted(tmp_path.iterdir()):
        assert "is damaged or is not a checkpoint" in refusal(path)


ENDLESS: dict[str, object] = {}
ENDLESS["model"] = ENDLESS
SPARSE = {"a": torch.eye(3).to_sparse()}


@pytest.mark.parametrize(
    "value", [{}, [], torch.ones(3), {"epoch": 3}, {"model": {"lr": 0.1}}, SPARSE, ENDLESS]
)
def test_files_without_weights_are_refused(tmp_path, value):
    sentence = refusal(saved(tmp_path / "a.pth", value))
    assert "holds no weights: " in sentence
    assert sentence.endswith("give the file of a state dict.")
