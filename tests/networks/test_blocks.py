import pandas as pd
import pytest
import torch
from torch import nn

from tests.helpers.golden import ARCHS, Golden
from tests.helpers.networks import every_mini, mini
from vitscope.networks.block_table import BLOCKS
from vitscope.networks.blocks import block_table
from vitscope.networks.capture import capturing
from vitscope.networks.cut_points import CutPoint, Layout
from vitscope.networks.family import find_family


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
    table = block_table(name, model, cut_points, 32)
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
    cut_points = find_family(family).cut_points(model)
    check(block_table(name, model, cut_points, 32), model, cut_points, 32)


@every_mini
def test_parameters_are_counted_where_they_are_used(name: str) -> None:
    """A change of what is counted for a block changes that map, and no map before it."""
    model, cut_points = mini(name)
    table = block_table(name, model, cut_points, 32)
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
    model, cut_points = mini("vit")
    block_table("vit", model, cut_points, 32)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


class Twice(nn.Module):
    """A network that applies the same layer in two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 3, 1)
        self.first, self.second = nn.Sequential(self.layer), nn.Sequential(self.layer)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(images))


def test_shared_parameters_are_counted_where_they_are_first_used() -> None:
    layout = Layout("nchw")
    cut_points = [
        CutPoint(
            name=name, kind=kind, stage=0, module=name, at="output", layout=layout, branch=None
        )
        for name, kind in (("first", "stem"), ("second", "conv"))
    ]
    assert block_table("twice", Twice(), cut_points, 8)["parameters"].tolist() == [12, 0]
