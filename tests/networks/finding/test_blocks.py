"""The block table: cut points, shapes, and what the parts between them cost."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers.golden import ARCHS, Golden
from tests.helpers.networks import build_empty, described, every_mini, hooks_of, mini, mini_blocks
from tests.helpers.written import SMALL, empty
from vitscope.files.tables import read_metadata
from vitscope.networks.building.family import find_family
from vitscope.networks.building.networks import plain_attention
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import BLOCKS, head_of, read_cut_points


def head_parameters(model: nn.Module, image_size: int, cut_points: list) -> int:
    """Count the parameters that the last feature map does not depend on, by their gradients."""
    last: list[torch.Tensor] = []

    def keep(_: int, latent: torch.Tensor) -> None:
        last[:] = [latent]

    model.requires_grad_(True)
    with capturing(model, cut_points, keep):
        model(torch.ones(1, 3, image_size, image_size))
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(last[0].sum(), parameters, allow_unused=True)
    pairs = zip(parameters, gradients, strict=True)
    return sum(parameter.numel() for parameter, gradient in pairs if gradient is None)


def check(table: pd.DataFrame, model: nn.Module, cut_points: list, image_size: int) -> None:
    count = len(cut_points)
    assert table.columns.tolist() == list(BLOCKS.columns)
    assert table["index"].tolist() == list(range(count))
    assert table["name"].is_unique
    assert table["kind"].iloc[0] == "stem"
    assert table["depth"].iloc[[0, -1]].tolist() == [0, 1]
    assert table["depth"].diff()[1:].tolist() == pytest.approx([1 / (count - 1)] * (count - 1))
    assert (table["parameters"] >= 0).all()
    total = sum(parameter.numel() for parameter in model.parameters())
    assert table["parameters"].sum() == total - head_parameters(model, image_size, cut_points)


@every_mini
def test_blocks_of_small_models(name: str) -> None:
    model, cut_points = mini(name)
    table = mini_blocks(name).table
    check(table, model, cut_points, 32)
    assert set(table["model"]) == {name}

    shapes: list[tuple[int, ...]] = []
    with capturing(model, cut_points, lambda _, latent: shapes.append(tuple(latent.shape))):
        model(torch.ones(3, 3, 32, 32))
    sizes = table[["channels", "height", "width"]].itertuples(index=False, name=None)
    assert [(3, *size) for size in sizes] == shapes


@pytest.mark.parametrize("name", ARCHS)
def test_blocks_of_published_models(golden: Golden, name: str) -> None:
    family, arch = ARCHS[name]
    model = find_family(family).build(arch, 100, 32).eval()
    blocks = list_blocks(name, model, described())
    check(blocks.table, model, blocks.points, 32)


@every_mini
def test_parameters_are_counted_where_they_are_used(name: str) -> None:
    """A change of what is counted for a block changes that map, and no map before it."""
    model, cut_points = mini(name)
    table = mini_blocks(name).table
    middle = int(table.index[table["parameters"] > 0][len(table) // 2])
    images = torch.randn(1, 3, 32, 32)

    def maps() -> list[torch.Tensor]:
        seen: list[torch.Tensor] = []
        with capturing(model, cut_points, lambda _, latent: seen.append(latent.clone())):
            model(images)
        return seen

    with torch.inference_mode():
        before = maps()
        owned = _parameters_of(model, cut_points, middle)
        assert sum(parameter.numel() for parameter in owned) == table["parameters"][middle]
        for parameter in owned:
            parameter.add_(torch.randn_like(parameter))
        after = maps()
    same = [torch.equal(*pair) for pair in zip(before, after, strict=True)]
    assert all(same[:middle])
    assert not same[middle]


def _parameters_of(model: nn.Module, cut_points: list, index: int) -> list[nn.Parameter]:
    """Return the parameters that the map at `index` depends on and the one before does not."""
    with torch.enable_grad(), torch.inference_mode(False):
        reached: list[set[str]] = []
        named = dict(model.named_parameters())
        seen: list[torch.Tensor] = []
        with capturing(model, cut_points, lambda _, latent: seen.append(latent)):
            model(torch.randn(1, 3, 32, 32))
        for latent in seen[index - 1 : index + 1]:
            gradients = torch.autograd.grad(
                latent.sum(), list(named.values()), allow_unused=True, retain_graph=True
            )
            pairs = zip(named, gradients, strict=True)
            reached.append({key for key, gradient in pairs if gradient is not None})
    return [named[key] for key in sorted(reached[1] - reached[0])]


def test_the_table_leaves_no_hooks() -> None:
    model, _ = mini("vit")
    before = hooks_of(model)
    list_blocks("vit", model, described())
    assert hooks_of(model) == before


class Twice(nn.Module):
    """A network that applies the same layer in two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 1)
        self.first, self.second = nn.Sequential(self.layer), nn.Sequential(self.layer)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(images))


def test_shared_parameters_are_counted_where_they_are_first_used() -> None:
    points = [{"module": name, "at": "output"} for name in ("first", "second")]
    table = list_blocks("twice", Twice(), described(8), points).table
    assert table["kind"].tolist() == ["stem", "conv"]
    assert table["parameters"].tolist() == [12, 0]


# Costs


def listed(family: str, arch: dict[str, Any], image_size: int = 32) -> Blocks:
    """Return the blocks of a network of five classes, built without weights."""
    model = build_empty(family, arch, 5, image_size)
    return list_blocks(family, model, described(image_size))


def test_operations_of_a_vit_are_those_of_its_matrices() -> None:
    patch, width, heads, classes = 8, 12, 3, 5
    arch = {"patch_size": patch, "embed_dim": width, "depth": 2, "num_heads": heads}
    table, head, *_ = listed("vit", arch)
    patches = (32 // patch) ** 2
    tokens = patches + 1
    # Queries, keys, values and the projection; scores of all pairs, and values weighted by them.
    msa = 4 * tokens * width**2 + 2 * tokens**2 * width
    mlp = 2 * tokens * width * 4 * width
    stem = patches * width * 3 * patch**2
    assert table["operations"].tolist() == [stem, msa, mlp, msa, mlp]
    assert head.operations == width * classes
    assert head.parameters == 2 * width + (width + 1) * classes


def test_operations_of_a_resnet_are_those_of_its_kernels() -> None:
    table, head, *_ = listed("resnet", {"block": "basic", "blocks": [1, 2, 1, 1], "width": 4})

    def conv(side: int, before: int, after: int, kernel: int) -> int:
        return side**2 * before * after * kernel**2

    def down(side: int, width: int) -> int:
        narrow = width // 2
        two = conv(side, narrow, width, 3) + conv(side, width, width, 3)
        return two + conv(side, narrow, width, 1)

    assert table["operations"].tolist() == [
        conv(32, 3, 4, 3),
        2 * conv(32, 4, 4, 3),
        down(16, 8),
        2 * conv(16, 8, 8, 3),
        down(8, 16),
        down(4, 32),
    ]
    assert head.operations == 32 * 5


@pytest.mark.parametrize("name", SMALL)
def test_parts_and_head_are_the_whole_network(name: str) -> None:
    whole = empty(name).requires_grad_(False)
    table, head, *_ = list_blocks(name, empty(name), described())
    with FlopCounterMode(display=False) as counter:
        whole(torch.empty(1, 3, 32, 32, device="meta"))
    assert 2 * (table["operations"].sum() + head.operations) == counter.get_total_flops()
    total = sum(parameter.numel() for parameter in whole.parameters())
    assert table["parameters"].sum() + head.parameters == total
    assert (table[["operations", "activations", "peak"]] > 0).all(axis=None)


@every_mini
def test_weights_and_their_device_make_no_difference(name: str) -> None:
    found = list_blocks(name, mini(name)[0], described())
    expected = mini_blocks(name)
    pd.testing.assert_frame_equal(found.table, expected.table)
    assert found[1:] == expected[1:]


@every_mini
def test_a_backward_pass_keeps_no_more_than_the_activations(name: str) -> None:
    model, _ = mini(name)
    kept: dict[int, int] = {}
    own = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    images = torch.zeros(1, 3, 32, 32)
    own.add(images.untyped_storage().data_ptr())
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with plain_attention(model), hooks:
        loss = model(images).sum()
    assert loss.requires_grad
    table, head, *_ = mini_blocks(name)
    bound = table["activations"].sum() + head.activations
    assert bound / 4 < sum(kept.values()) <= bound


@pytest.mark.parametrize("name", SMALL)
def test_head_and_cut_points_are_in_the_metadata(tmp_path: Path, name: str) -> None:
    blocks = list_blocks(name, empty(name), described())
    BLOCKS.write(blocks.table, tmp_path / "blocks", blocks.metadata())
    assert head_of(read_metadata(tmp_path / "blocks")) == blocks.head
    assert read_cut_points(tmp_path / "blocks") == blocks.points
