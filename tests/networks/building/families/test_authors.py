"""Networks of the paper and of the authors' zoo, whose numbers are those of the authors' code."""

import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from tests.helpers.networks import build_empty, build_undrawn, described, read
from tests.helpers.tiers import some_of
from tests.helpers.written import FOLDER
from vitscope.networks.building.networks import fill, find_family
from vitscope.networks.checkpoints.translation import translate
from vitscope.networks.finding.blocks import list_blocks

GOLDEN: dict[str, Any] = json.loads((FOLDER / "authors.json").read_text(encoding="utf-8"))
LAYOUTS = pd.read_csv(FOLDER / "authors_layouts.csv").groupby("network")
NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {
    "alexnet": ("alexnet", {"stem": False}),
    "alexnet stem": ("alexnet", {"stem": True}),
    "vgg_11": ("vgg", {"depth": 11}),
    "vgg_19": ("vgg", {"depth": 19}),
    "prevgg_11": ("vgg", {"depth": 11, "preactivation": True}),
    "preresnet_18": ("preresnet", {"depth": 18}),
    "preresnet_50 stem": ("preresnet", {"depth": 50, "stem": True}),
    "resnet_18 stem": ("resnet", {"depth": 18, "stem": True}),
    "resnext_50": ("resnet", {"depth": 50, "groups": 32, "group_width": 4}),
    "wideresnet_50": ("resnet", {"depth": 50, "group_width": 128}),
    "seresnet_18": ("resnet", {"depth": 18, "gate": "se"}),
    "seresnet_50": ("resnet", {"depth": 50, "gate": "se"}),
    "cbamresnet_18": ("resnet", {"depth": 18, "gate": "cbam"}),
    "cbamresnet_50": ("resnet", {"depth": 50, "gate": "cbam"}),
    "alternet_50 stem": ("alternet", {"depth": 50, "stem": True}),
}
# Sides of the images for the logits of those that have them, where it is not 32.
SIZES = {name: 64 for name in NETWORKS if name.endswith("stem")} | {"alternet_50 stem": 224}
HIDDEN = {"alexnet", "vgg"}


def empty(name: str, build: Any = build_empty, **others: Any) -> nn.Module:
    family, arch = NETWORKS[name]
    return build(family, arch | others, 10, SIZES.get(name, 32))


def value_of(key: str, shape: torch.Size) -> Tensor:
    """Return what a tensor holds, which is drawn by its name, of about its usual size."""
    if key.endswith("num_batches_tracked"):
        return torch.zeros(shape, dtype=torch.int64)
    drawn = normal(zlib.crc32(key.encode()), shape)
    if key.endswith("running_var"):
        return 1 + drawn.abs() / 4
    if len(shape) == 1:
        return (0 if key.endswith(("running_mean", "bias")) else 1) + drawn / 10
    return drawn * math.sqrt(2 / math.prod(shape[1:]))


def normal(seed: int, shape: Sequence[int]) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, np.float32))


@pytest.mark.parametrize("name", NETWORKS)
def test_names_and_shapes(name: str) -> None:
    model = empty(name)
    expected = LAYOUTS.get_group(name).set_index("key")["shape"].to_dict()
    assert {
        key: "x".join(map(str, tensor.shape))
        for key, tensor in model.state_dict().items()
        if not key.endswith("num_batches_tracked")
    } == expected
    parameters = sum(each.numel() for each in model.parameters())
    assert parameters == GOLDEN["parameters"][name]


def filled(name: str) -> nn.Module:
    """Return a network with the values of its names, read as from a checkpoint of the authors."""
    hidden = {"hidden": 16} if NETWORKS[name][0] in HIDDEN else {}
    model = empty(name, build_undrawn, **hidden)
    theirs = {key: value_of(key, tensor.shape) for key, tensor in model.state_dict().items()}
    return fill(model, translate(theirs, model).weights)


def images(name: str) -> Tensor:
    size = SIZES.get(name, 32)
    return normal(size, (2, 3, size, size))


# Some have as many blocks of the same kinds as others.
SLOW = {"preresnet_50 stem", "seresnet_50", "cbamresnet_50"}
# With these weights its attention is so sharp that rounding decides: double precision, another
# processor, or images that differ by 1e-6 change its logits by a tenth.
UNSTABLE = {"alternet_50 stem"}
STABLE = GOLDEN["logits"].keys() - UNSTABLE


@pytest.mark.parametrize("name", some_of(sorted(STABLE), *STABLE - SLOW))
def test_logits(name: str) -> None:
    with torch.inference_mode():
        logits = filled(name)(images(name))
    expected = torch.tensor(GOLDEN["logits"][name])
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


# What the layers of each are, from the first to the last: where there are no joins, every pooling.
KINDS = {
    "alexnet": "stem pool conv pool conv conv conv pool pool",
    "vgg_11": "stem pool conv pool conv conv pool conv conv pool conv conv pool",
    # Poolings follow its convolutions, of which an activation comes before the next.
    "prevgg_11": "stem pool conv pool conv pool conv pool",
    "preresnet_18": "stem" + " conv" * 8,
    "resnext_50": "stem" + " conv" * 16,
    "seresnet_18": "stem" + " conv" * 8,
    "cbamresnet_50": "stem" + " conv" * 16,
}


@pytest.mark.parametrize("name", KINDS)
def test_cut_points_are_found(name: str) -> None:
    """In narrower ones; and reading them leaves the logits as they are."""
    family, arch = NETWORKS[name]
    narrow = {"width": 8} | ({"hidden": 16} if family in HIDDEN else {})
    torch.manual_seed(0)
    model = find_family(family).build(arch | narrow, 10, 32).eval()
    blocks = list_blocks(name, model, described())
    assert blocks.table["kind"].tolist() == KINDS[name].split()
    logits, seen = read(model, blocks.points, images(name))
    assert torch.equal(logits, read(model, [], images(name))[0])
    shapes = blocks.table[["channels", "height", "width"]]
    assert [list(latent.shape[1:]) for latent in seen] == shapes.values.tolist()


@pytest.mark.parametrize("family", ["resnet", "preresnet", "alternet"])
def test_stochastic_depth_grows_from_the_first_block_to_the_last(family: str) -> None:
    model = build_empty(family, {"depth": 50, "drop_path_rate": 0.3}, 10, 32)
    dropping = [each.sd for each in model.modules() if hasattr(each, "sd")]
    rates = [getattr(each, "drop_prob", 0.0) for each in dropping]
    assert rates == pytest.approx([0.3 * n / (len(rates) - 1) for n in range(len(rates))])
    assert len(rates) == (17 if family == "alternet" else 16)


# Those of the golden folder, with its weights.


@pytest.mark.parametrize("name", ["resnet_50", "vit_ti"])
def test_values_of_the_authors(golden: Any, name: str) -> None:
    expected = golden.expected[name]
    model = golden.model(name)
    images, labels = golden.images(16)
    logits, maps = read(model, list_blocks(name, model, described()).points, images)

    assert sum(parameter.numel() for parameter in model.parameters()) == expected["params"]
    assert [list(latent.shape) for latent in maps] == expected["shapes"]
    variances = [latent.flatten(2).var(dim=2).mean().item() for latent in maps]
    assert variances == pytest.approx(expected["variance"], rel=1e-5)
    assert logits[0, :8].tolist() == pytest.approx(expected["logits_first"], rel=1e-5, abs=1e-5)
    assert cross_entropy(logits, labels).item() == pytest.approx(expected["nll"], rel=1e-5)


@pytest.mark.parametrize("name", ["pit_ti", "swin_ti"])
def test_translating_twice_changes_nothing(golden: Any, name: str) -> None:
    model = golden.model(name)
    once = translate(golden.state_dict(name), model).weights
    twice = translate(once, model).weights
    assert twice.keys() == once.keys() == model.state_dict().keys()
    assert all(torch.equal(twice[key], once[key]) for key in once)


def test_recomputed_buffers_are_those_of_the_checkpoint(golden: Any) -> None:
    model = golden.model("swin_ti")
    buffers = dict(model.named_buffers())
    stored = {
        key: tensor
        for key, tensor in golden.state_dict("swin_ti").items()
        if key.endswith(("relative_position_index", "attn_mask"))
    }
    assert len(stored) == 17
    for key, tensor in stored.items():
        assert torch.equal(buffers[key].long(), tensor.long()), key
