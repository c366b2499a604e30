from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.kinds import timm
from tests.helpers.networks import described, read
from tests.helpers.refusals import refusal
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.search import search_for_cut_points


class Unit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv(x)) + x)


class Net(nn.Module):
    """Two units, a module that runs twice, and one that gives no map."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 4, 4)
        self.units = nn.Sequential(Unit(), Unit())
        self.twice = nn.ReLU()
        self.fixed = nn.Embedding(2, 5)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        x = self.twice(self.units(self.twice(self.stem(images))))
        return self.head(x.mean((2, 3))) + self.fixed(torch.zeros((), dtype=int, device=x.device))


IMAGES = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))


def at(module: str, at: str = "output", **others: Any) -> dict[str, Any]:
    return {"module": module, "at": at, **others}


def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def listed(*points: dict[str, Any]) -> Any:
    return list_blocks("mine", net(), described(16), points)


def test_before_and_after_a_single_convolution() -> None:
    """In the order of the network, whatever that of the study."""
    blocks = listed(at("units.1.conv", inside=True), at("units.1.conv", "input"), at("stem"))
    assert blocks.table["name"].tolist() == ["stem", "units.1.conv.input", "units.1.conv"]
    weights = 4 * 4 * 9 + 4
    assert blocks.table["parameters"].tolist() == [4 * 3 * 16 + 4, weights + 8, weights]


def test_values_are_those_of_the_modules() -> None:
    model = net()
    blocks = listed(at("stem"), at("units.*"), at("units.1.conv", inside=True))
    assert blocks.table["name"].tolist() == ["stem", "units.0", "units.1.conv", "units.1"]
    assert blocks.table["kind"].tolist() == ["stem", "conv", "conv", "conv"]
    _, seen = read(model, blocks.points, IMAGES)
    with torch.no_grad():
        stem = model.stem(IMAGES)
        first = model.units[0](stem.relu())
        expected = [stem, first, model.units[1].conv(first), model.units[1](first)]
    assert all(torch.equal(*pair) for pair in zip(seen, expected, strict=True))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("units.*", ["units.0", "units.1"]),
        ("units.*.bn", ["units.0.bn", "units.1.bn"]),
        ("**.conv", ["units.0.conv", "units.1.conv"]),
    ],
)
def test_patterns(pattern: str, names: list[str]) -> None:
    assert listed(at(pattern, inside=True)).table["name"].tolist() == names


NO_MAP = "the output of '{}' is no feature map:"


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([at("unit.0")], "the network has no module 'unit.0'. Did you mean 'units.0'?"),
        ([at("twice")], "'twice' runs 2 times in a pass, allowed: modules that run once."),
        ([at("head")], f"{NO_MAP.format('head')} of 2 images it has the shape (2, 5)."),
        ([at("fixed")], f"{NO_MAP.format('fixed')} it does not depend on the images."),
        (
            # The activation of a unit is its last module.
            [at("units.**", inside=True)],
            "the output of 'units.0.relu' is the same value as 'units.0', which is named too: "
            "leave one out.",
        ),
        (
            [at("units.0"), at("units.1", "input")],
            "the input of 'units.1' is the same value as 'units.0', which is named too: leave one "
            "out.",
        ),
        (
            [at("units.0.conv")],
            "the output of 'units.0.conv' is not the whole stream: the result also depends on "
            "values that go around it. Say `inside: true` with the point to read it all the same.",
        ),
    ],
)
def test_points_that_cannot_be_read(points: list[dict[str, Any]], sentence: str) -> None:
    assert refusal(listed, *points) == f"models.mine: points: {sentence}"


@pytest.mark.parametrize(
    ("name", "size"),
    [("crossvit_9_240", 240), ("tnt_s_legacy_patch16_224", 224), ("hrnet_w18_small", 64)],
)
def test_several_streams_of_which_some_are_not_found_are_refused(name: str, size: int) -> None:
    with torch.device("meta"):
        network = timm(name)
    said = refusal(list_blocks, "mine", network, described(size))
    assert said.startswith("models.mine: ")
    assert said.endswith("name the points to read, as `points`.")


class Choosing(nn.Module):
    """A network that leaves a block out where an image is dark."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 4, 4)
        self.units = nn.ModuleList(Unit() for _ in range(2))
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for unit in self.units:
            if images.mean() >= 0:
                x = unit(x)
        return self.head(x.mean((2, 3)))


def test_a_path_that_is_chosen_by_the_images() -> None:
    model = Choosing().eval()
    said = refusal(list_blocks, "mine", model, described(16))
    assert said.startswith("models.mine: the network does other things for ")
    points = search_for_cut_points(model, torch.zeros(2, 3, 16, 16)).points
    assert [point.name for point in points] == ["stem", "units.0", "units.1"]
    assert refusal(read, model, points, -torch.ones(2, 3, 16, 16)) == (
        "The network took another path than the one that was recorded: it never came to the cut "
        "point 'units.0'. Networks that choose their path by the images cannot be read."
    )
