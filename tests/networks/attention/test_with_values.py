"""What a network makes of its weights alone has values, in a pass on shapes alone."""

import pytest
import torch
from torch import Tensor, nn

from tests.helpers.networks import described, mini
from vitscope.networks.finding.dataflow import Constant, Dataflow, name_of, record_with_values

IMAGES = described(8)


def constants(flow: Dataflow, name: str) -> list[Constant]:
    """Return the constants among the operands of operations of a name."""
    of_name = [op for op in flow.operations if op.name == name]
    return [arg for op in of_name for arg in op.args if isinstance(arg, Constant)]


class Adds(nn.Module):
    """Adds what it makes of its weights, in some ways, to the mean of its images."""

    def __init__(self, way: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.way = way
        self.weight = nn.Parameter(torch.randn(6, 3))
        self.register_buffer("rows", torch.tensor([4, 0, 1]), persistent=False)

    def made(self) -> Tensor:
        """What is added."""
        if self.way == "a view":
            return self.weight.t()[:, 2]
        if self.way == "chosen and resized":
            chosen = self.weight[self.rows].T[None]
            return nn.functional.interpolate(chosen, 4, mode="linear")[0, :, 1]
        if self.way == "in a new tensor":
            new = torch.zeros(3, device=self.weight.device)
            new[1:] = self.weight[0, 1:].exp()
            return new + torch.arange(3.0, device=self.weight.device)
        if self.way == "in place":
            return self.weight.mul_(2).sum(0)
        return self.weight.mean(0)

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3)) + self.made()


@pytest.mark.parametrize("way", ["", "a view", "chosen and resized", "in a new tensor"])
def test_values_are_those_that_the_network_computes(way: str) -> None:
    model = Adds(way)
    flow = record_with_values(model, IMAGES)
    (added,) = constants(flow, "add")
    torch.testing.assert_close(added.tensor, model.made(), rtol=0, atol=0)
    assert added.shape == (3,)
    # Nothing was computed of images.
    assert name_of(model, added) == ("weight" if way == "a view" else None)


def test_weights_are_left_as_they_are() -> None:
    model = Adds("in place")
    before = model.weight.detach().clone()
    (added,) = constants(record_with_values(model, IMAGES), "add")
    torch.testing.assert_close(added.tensor, 2 * before.sum(0))
    assert torch.equal(model.weight, before)


class Stays(nn.Module):
    """Holds a tensor that is neither a parameter nor a buffer: it stays where it is."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.added = nn.Conv2d(3, 4, 3), torch.arange(4.0)

    def forward(self, images: Tensor) -> Tensor:
        return (self.layer(images).mean((2, 3)) + self.added.expand(2, 4)).relu()


def test_a_network_that_does_not_run_on_shapes_runs_as_it_is() -> None:
    model = Stays()
    flow = record_with_values(model, IMAGES)
    (added,) = constants(flow, "add")
    assert added.tensor[0].tolist() == [0, 1, 2, 3]
    assert torch.equal(constants(flow, "convolution")[0].tensor, model.layer.weight)


@pytest.mark.parametrize("name", ["vit", "swin", "alternet"])
def test_all_values_of_networks_are_known(name: str) -> None:
    model, _ = mini(name)
    flow = record_with_values(model, described())
    known = [
        arg for op in flow.operations for arg in op.args if isinstance(arg, Constant)
    ]  # fmt: skip
    assert len(known) > 50
    assert not any(constant.tensor.is_meta for constant in known)
    assert all(tuple(constant.tensor.shape) == constant.shape for constant in known)
    names = {name_of(model, constant) for constant in known}
    assert {name for name, each in model.named_parameters() if "weight" in name} <= names
