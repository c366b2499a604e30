"""Networks without shortcuts, written as tutorials write them: what is found in them can be read.

Their layers are functions, or modules that run more than once, so that operations are cut points:
torch names these otherwise in inference mode, in which jobs run.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vitscope
from tests.helpers.networks import described
from tests.scopes.networks import CHANNELS, CLASSES, SIZE, network, pixels
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.running.joins import prove_capture

Maps = list[Tensor]


class Plain(nn.Module):
    """Two convolutions, what stands behind them, and a classifier of the mean over positions."""

    def __init__(self, layers: Callable[["Plain", Tensor], Maps]) -> None:
        super().__init__()
        self.one = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.two = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.pool, self.relu = nn.MaxPool2d(2), nn.ReLU()
        self.head = nn.Linear(CHANNELS, CLASSES)
        self.layers = layers

    def forward(self, images: Tensor) -> Tensor:
        return self.head(F.adaptive_avg_pool2d(self.layers(self, images)[-1], 1).flatten(1))


def pooled(net: Plain, images: Tensor) -> Maps:
    first = F.relu(net.one(images))
    smaller = F.max_pool2d(first, 2)
    second = F.relu(net.two(smaller))
    return [first, smaller, second, F.max_pool2d(second, 2)]


def pooled_by_one_module(net: Plain, images: Tensor) -> Maps:
    first = net.relu(net.one(images))
    smaller = net.pool(first)
    second = net.relu(net.two(smaller))
    return [first, smaller, second, net.pool(second)]


def pooled_to_a_size(net: Plain, images: Tensor) -> Maps:
    first = F.relu6(net.one(images))
    smaller = F.adaptive_avg_pool2d(first, 5)
    return [first, smaller, F.prelu(net.two(smaller), net.one.bias[:1].abs())]


def activated_by_others(net: Plain, images: Tensor) -> Maps:
    first = F.selu(net.one(images))
    smaller = F.avg_pool2d(first, 2)
    return [first, smaller, F.hardtanh(net.two(smaller))]


@pytest.mark.parametrize(
    "layers", [pooled, pooled_by_one_module, pooled_to_a_size, activated_by_others]
)
def test_a_plain_network_is_read_where_it_was_found(
    layers: Callable[[Plain, Tensor], Maps],
) -> None:
    model = network(Plain, layers=layers).eval()
    points = list_blocks("net", model, described(SIZE)).points
    assert any(point.operation is not None for point in points)
    assert prove_capture(model, points, torch.randn(2, 3, SIZE, SIZE)).wrong == []

    scope = vitscope.look(model, pixels(), mean=0.5, std=0.25)
    with torch.no_grad():
        expected = layers(model, (pixels() / 255 - 0.5) / 0.25)
    for (_, read), computed in zip(scope.maps(), expected, strict=True):
        torch.testing.assert_close(torch.tensor(read), computed, rtol=1e-5, atol=1e-6)
    assert [*scope.feature_variance["name"]] == [point.name for point in points]


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_is_read_alike_in_a_notebook_of_either_mode(mode: Callable[[], object]) -> None:
    with mode():
        scope = vitscope.look(network(Plain, layers=pooled), pixels(), mean=0.5, std=0.25)
        assert len(scope.feature_variance) == 4
