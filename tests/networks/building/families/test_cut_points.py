from copy import deepcopy
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import build_undrawn, described, read
from tests.helpers.tiers import some_of
from tests.helpers.written import NETWORKS, SMALL, built, empty, written_points
from vitscope.networks.building import networks as models
from vitscope.networks.building.family import family_names
from vitscope.networks.building.networks import find_family
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.finding.cut_points import COSTS, CutPoint

IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
Case = tuple[nn.Module, list[CutPoint]]


@pytest.fixture(scope="module", params=SMALL)
def case(request: pytest.FixtureRequest) -> Case:
    torch.manual_seed(0)
    model = built(request.param)
    # The last normalization of a block starts at zero in timm's ResNets, which would hide a branch.
    for parameter in model.parameters():
        if parameter.ndim == 1:
            nn.init.uniform_(parameter, 0.5, 1.5)
    return model, listed(request.param).points


@cache
def listed(name: str) -> Blocks:
    return list_blocks(name, empty(name), described(NETWORKS[name]["image_size"]))


def test_every_family_is_here() -> None:
    families = {NETWORKS[name]["family"] for name in SMALL}
    # Those of the authors' zoo are in test_authors.py, those of Hugging Face in test_hf.py.
    others = {"python", "timm", "hf", "alexnet", "preresnet", "vgg"}
    assert families == set(family_names()) - others


# Of large ones, each of 200 and more operations is recorded, of images of 224 pixels.
OFTEN = [name for name, entry in NETWORKS.items() if entry["image_size"] <= 32]
WHAT = ["name", "kind", "stage", "channels", "height", "width"]


@pytest.mark.parametrize("name", some_of(NETWORKS, *OFTEN))
def test_what_is_found_is_what_was_written(name: str) -> None:
    """Names, kinds, stages, order, shapes, branches, and what lies between them, to the byte."""
    found, written = listed(name), written_points(name)
    # They were written when what mixes positions was an MLP like any other.
    mixes = written["name"].str.endswith(".mlp_tokens")
    written = written.assign(kind=written["kind"].mask(mixes, "mixing"))
    assert found.table[WHAT].values.tolist() == written[WHAT].values.tolist()
    joins = [point.join is not None for point in found.points]
    assert joins == (written["branch"] != "").tolist()
    # Its stem is read where the pooling ends, while what was pooled is still there.
    costs = [cost for cost in COSTS if cost != "peak" or name != "timm_resnet basic"]
    assert found.table[costs].values.tolist() == written[costs].values.tolist()


def hooked(model: nn.Module, name: str) -> list[Tensor]:
    """Return the maps where they were once read, by hooks of torch's own."""
    maps: list[Tensor] = []
    model = deepcopy(model)

    def keep(channels: int, height: int, width: int, value: Any) -> None:
        tensor = value[0] if isinstance(value, tuple) else value
        if tensor.ndim == 3:
            tokens = tensor[:, -height * width :]
            tensor = tokens.transpose(1, 2).reshape(-1, channels, height, width)
        elif NETWORKS[name]["family"] == "swin":
            tensor = tensor.permute(0, 3, 1, 2)
        assert tensor.shape == (len(IMAGES), channels, height, width)
        maps.append(tensor.clone())

    for _, point in written_points(name).iterrows():
        module = model.get_submodule(point["module"])
        shape = point[["channels", "height", "width"]]
        if point["at"] == "input":
            module.register_forward_pre_hook(lambda _, args, s=shape: keep(*s, args))
        else:
            module.register_forward_hook(lambda _, args, out, s=shape: keep(*s, out))
    with torch.no_grad():
        model(IMAGES)
    return maps


def test_maps_are_those_of_hooks_and_stay_as_they_were_read(case: Case, request: Any) -> None:
    model, cut_points = case
    expected = hooked(model, request.node.callspec.params["case"])
    _, stream = read(model, cut_points, IMAGES, copied=False)
    assert all(torch.equal(*pair) for pair in zip(stream, expected, strict=True))


@pytest.mark.parametrize("training", [False, True])
def test_reading_leaves_the_logits_as_they_are(case: Case, training: bool) -> None:
    model, cut_points = case
    model.train(training)
    with torch.random.fork_rng():
        torch.manual_seed(2)
        plain, _ = read(model, [], IMAGES)
        torch.manual_seed(2)
        logits, _ = read(model, cut_points, IMAGES)
    model.eval()
    assert torch.equal(plain, logits)


def test_silencing_a_branch_leaves_the_stream_before_it(case: Case, request: Any) -> None:
    """A block without its branch is its shortcut: the cut points sit on the stream, all of them."""
    model, cut_points = case
    _, stream = read(model, cut_points, IMAGES)
    checked = 0
    branches = written_points(request.node.callspec.params["case"])["branch"]
    for index, (point, branch) in enumerate(zip(cut_points, branches, strict=True)):
        if not branch or stream[index].shape != stream[index - 1].shape:
            continue
        hook = model.get_submodule(branch).register_forward_hook(lambda _, args, out: out * 0)
        _, silenced = read(model, cut_points, IMAGES)
        hook.remove()
        assert torch.equal(silenced[index - 1], stream[index - 1])
        assert torch.equal(silenced[index], stream[index - 1]), point.name
        assert not torch.allclose(stream[index], stream[index - 1]), point.name
        checked += 1
    assert checked > 0


def test_filling_an_undrawn_model_is_loading_a_model(case: Case, request: Any) -> None:
    model, cut_points = case
    undrawn = empty(request.node.callspec.params["case"], build_undrawn)
    filled = models.fill(undrawn, model.state_dict())
    assert not filled.training
    logits, stream = read(model, cut_points, IMAGES)
    filled_logits, filled_stream = read(filled, cut_points, IMAGES)
    assert torch.equal(filled_logits, logits)
    assert all(torch.equal(one, other) for one, other in zip(filled_stream, stream, strict=True))


def test_stochastic_depth_acts_before_the_stream_is_read() -> None:
    arch = {**NETWORKS["vit"]["arch"], "depth": 2, "drop_path_rate": 0.9}
    torch.manual_seed(0)
    model = find_family("vit").build(arch, num_classes=5, image_size=32)
    cut_points = list_blocks("vit", model, described()).points
    _, latents = read(model.train(), cut_points, torch.randn(64, 3, 32, 32))
    dropped = [
        (after == before).flatten(1).all(dim=1).float().mean().item()
        for before, after in pairwise(latents)
    ]
    assert dropped[:2] == [0, 0]
    assert all(0.7 < share < 1 for share in dropped[2:])
