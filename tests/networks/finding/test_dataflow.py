import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.helpers.networks import described, mini
from vitscope.errors import VitscopeError
from vitscope.networks.finding.dataflow import Constant, Dataflow, Value
from vitscope.networks.finding.dataflow_recorder import (
    name_of_constant,
    note_tensor,
    record_dataflow,
    record_with_values,
)

IMAGES = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
# Of each step, the earlier values that it adds up, by how far back they are.
STEPS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True), max_size=9)


class Graph(nn.Module):
    """Every step is the cosine of a sum of earlier values; the last is the result."""

    def __init__(self, steps: list[list[int]]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, images: Tensor) -> Tensor:
        values = [images]
        for backs in self.steps:
            first, *others = [values[max(len(values) - back, 0)] for back in backs]
            for other in others:
                first = first + other
            values.append(first.cos())
        return values[-1].sin()


def paths(flow: Dataflow, index: int) -> list[list[int]]:
    before = {value.operation for value in flow.operations[index].operands}
    if not before:
        return [[index]]
    return [[*path, index] for other in before for path in paths(flow, other)]


@settings(max_examples=100)
@given(STEPS)
def test_dominators_are_what_lies_on_every_path(steps: list[list[int]]) -> None:
    flow = record_dataflow(Graph(steps), IMAGES)
    every = [set(path) for path in paths(flow, flow.result.operation)]
    assert flow.dominators() == sorted(set.intersection(*every))
    assert flow.needed() == sorted(set.union(*every))


def names(flow: Dataflow, indices: list[int]) -> list[str]:
    return [flow.operations[index].name for index in indices]


class Written(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def forward(self, images: Tensor) -> Tensor:
        x = images.cos()
        if self.how == "in place":
            y = x.sin()
            x += y
            x.relu_()
        elif self.how == "a slice":
            x[:, :1] += x[:, 1:2].sin()
        elif self.how == "a view before":
            view = x.view(2, -1)
            x.sin_()
            return view.relu()
        elif self.how == "into a new tensor":
            out = torch.zeros_like(x)
            out[:, :2] = x[:, :2]
            out[:, 2:] = x[:, 2:].sin()
            return out
        return x


@pytest.mark.parametrize(
    ("how", "dominators"),
    [
        ("in place", ["images", "cos", "add", "relu"]),
        ("a view before", ["images", "cos", "write", "relu"]),
        ("a slice", None),
        ("into a new tensor", None),
    ],
)
def test_what_works_in_place_is_followed(how: str, dominators: list[str] | None) -> None:
    """What changes the result is needed: another image gives another result."""
    flow = record_dataflow(Written(how), IMAGES)
    assert dominators in (None, names(flow, flow.dominators()))
    needed = names(flow, flow.needed())
    assert needed.count("sin") == 1
    assert needed.count("cos") == 1


def test_modules_are_recorded_with_what_they_take_and_return() -> None:
    model = nn.Sequential(nn.Conv2d(3, 2, 1), nn.ReLU(inplace=True), nn.Conv2d(2, 1, 1))
    flow = record_dataflow(model, IMAGES)
    convolved, activated, last = (
        next(i for i, op in enumerate(flow.operations) if op.module == str(n)) for n in range(3)
    )
    places = [(p.module, p.at, p.value) for p in flow.passages if p.module]
    assert places == [
        ("0", "input", Value(0)),
        ("0", "output", Value(convolved)),
        ("1", "input", Value(convolved)),
        ("1", "output", Value(activated)),
        ("2", "input", Value(activated)),
        ("2", "output", Value(last)),
    ]
    assert flow.result == Value(last)


def test_a_result_without_images() -> None:
    class Fixed(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return torch.ones(2, 5)

    with pytest.raises(VitscopeError, match="does not depend on its images by operations of torch"):
        record_dataflow(Fixed(), IMAGES)


class Added(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.arange(16.0).view(4, 4))

    def forward(self, images: Tensor) -> Tensor:
        sums = images + self.embedding[1:].exp().mean(0)
        changed = torch.ones(4, 4)
        changed.add_(sums.mean((0, 1)))
        return sums + changed


def test_constants_have_the_values_that_were_there_then() -> None:
    model = Added()
    flow = record_dataflow(model, IMAGES)
    added, changing, _ = (op for op in flow.operations if op.name == "add")
    expected = model.embedding[1:].exp().mean(0)
    torch.testing.assert_close(added.args[1].tensor, expected)
    # It holds other values when the pass has ended.
    assert changing.args[0].tensor.tolist() == torch.ones(4, 4).tolist()
    assert changing.args[0].shape == (4, 4)


PICTURES = described(8)


def constants(flow: Dataflow, *names: str) -> list[Constant]:
    """Return the constants among the operands of all operations, or of those of a name."""
    operations = [op for op in flow.operations if op.name in names or not names]
    return [arg for op in operations for arg in op.args if isinstance(arg, Constant)]


class Adds(nn.Module):
    """Adds what it makes of its weights, in some ways, to the mean of its images."""

    def __init__(self, way: str = "") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.way = way
        self.weight = nn.Parameter(torch.randn(6, 3))
        self.register_buffer("rows", torch.tensor([4, 0, 1]), persistent=False)

    def made(self) -> Tensor:
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
    flow = record_with_values(model, PICTURES)
    (added,) = constants(flow, "add")
    torch.testing.assert_close(added.tensor, model.made(), rtol=0, atol=0)
    assert added.shape == (3,)
    # Nothing was computed of images.
    assert name_of_constant(model, added) == ("weight" if way == "a view" else None)


def test_weights_are_left_as_they_are() -> None:
    model = Adds("in place")
    before = model.weight.detach().clone()
    (added,) = constants(record_with_values(model, PICTURES), "add")
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
    flow = record_with_values(model, PICTURES)
    (added,) = constants(flow, "add")
    assert added.tensor[0].tolist() == [0, 1, 2, 3]
    assert torch.equal(constants(flow, "convolution")[0].tensor, model.layer.weight)


@pytest.mark.parametrize("name", ["vit", "swin", "alternet"])
def test_all_values_of_networks_are_known(name: str) -> None:
    model, _ = mini(name)
    flow = record_with_values(model, described())
    known = constants(flow)
    assert len(known) > 50
    assert not any(constant.tensor.is_meta for constant in known)
    assert all(tuple(constant.tensor.shape) == constant.shape for constant in known)
    names = {name_of_constant(model, constant) for constant in known}
    assert {name for name, each in model.named_parameters() if "weight" in name} <= names


def test_a_function_notes_what_it_takes() -> None:
    noted = []

    def function(tensor: Tensor) -> Tensor:
        noted.append(note_tensor(tensor))
        return tensor + 1

    class Calling(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            function(torch.ones(2))
            return function(2 * images).sum(1)

    model = nn.Sequential(nn.Identity(), Calling())
    flow = record_dataflow(model, IMAGES)
    (constant, _, _), (value, before, module) = noted
    assert constant is None
    assert (flow.operations[value.operation].name, module) == ("mul", "1")
    assert flow.operations[before].operands == [value]
    model(IMAGES)
    assert noted[2:] == [None, None]
