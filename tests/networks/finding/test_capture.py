import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import hooks_of, read
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint, Layout
from vitscope.networks.finding.search import search_for_cut_points


def test_tokens_need_a_grid() -> None:
    with pytest.raises(ValueError, match="grid"):
        Layout("nlc").to_nchw(torch.zeros(1, 4, 2))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 1))


def point(module: str, at: str) -> CutPoint:
    return CutPoint(f"{module}.{at}", "conv", 1, module, at, Layout("nchw"))


def hooks_in(model: nn.Module) -> int:
    return sum(map(len, hooks_of(model)))


def test_input_and_output_are_read_when_they_exist() -> None:
    model, images = network(), torch.randn(2, 3, 5, 5)
    cut_points = [point("0", "output"), point("2", "input"), point("2", "output")]
    logits, seen = read(model, cut_points, images)
    convolved = model[0](images)
    # The first is before ReLU, although ReLU then works in place on the same memory.
    assert all(map(torch.equal, seen, [convolved, convolved.relu(), logits]))
    assert len(seen) == 3


class Functional(nn.Module):
    """Adds up without any module that takes or returns the sums."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.weight = nn.Conv2d(3, 4, 2, 2), nn.Parameter(torch.randn(4, 4, 1, 1))
        self.bias = nn.Parameter(torch.randn(1, 4, 1, 1))

    def sums(self, images: Tensor) -> list[Tensor]:
        x = self.stem(images)
        first = x + nn.functional.conv2d(x.relu(), self.weight)
        # Sums too, but the second value is not of the images.
        shifted = first * (self.bias + self.bias)
        second = shifted + nn.functional.conv2d(shifted.relu(), self.weight) + self.bias
        return [x, first, second - self.bias]

    def forward(self, images: Tensor) -> Tensor:
        return self.sums(images)[-1].mean((2, 3))


def test_sums_that_no_module_takes_are_read_where_they_are_computed() -> None:
    torch.manual_seed(0)
    model, images = Functional().eval(), torch.randn(3, 3, 8, 12)
    points = search_for_cut_points(model, images[:2]).points
    assert [point.module for point in points] == ["stem", None, None]
    for batch in (images, images[:1]):
        _, seen = read(model, points, batch)
        x, first, _ = model.sums(batch)
        shifted = first * (model.bias + model.bias)
        second = shifted + nn.functional.conv2d(shifted.relu(), model.weight)
        assert all(torch.equal(*pair) for pair in zip(seen, (x, first, second), strict=True))


def test_no_hook_is_left_behind() -> None:
    model = network()
    with capturing(model, [point("0", "output"), point("1", "input")], lambda *_: None):
        # And two of the model itself, where a pass begins and where it ends.
        assert hooks_in(model) == 2 + 2
    assert hooks_in(model) == 0
    with pytest.raises(KeyError), capturing(model, [point("0", "output")], lambda *_: None):
        raise KeyError
    assert hooks_in(model) == 0
    with pytest.raises(AttributeError):
        read(model, [point("0", "output"), point("9", "input")], torch.zeros(2, 3, 5, 5))
    assert hooks_in(model) == 0
