"""Networks that a pass changes, or that a recorded pass cannot take: given back as they were."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.helpers.toys import C, Net, Residual, Tokens, mlp
from tests.scopes.networks import labels
from vitscope.errors import VitscopeError
from vitscope.scopes.scope import Scope

IMAGES = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def look(model: nn.Module, images: Any = IMAGES) -> Scope:
    return vitscope.look(model, images, labels(len(images)))


def net(branch: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return Net(Tokens(), Residual(mlp()), Residual(branch), Residual(mlp())).eval()


@pytest.mark.parametrize("read", [look, lambda model: vitscope.blocks(model, IMAGES)])
def test_lazy_modules_are_refused_untouched_and_run_later(read: Callable[[Any], Any]) -> None:
    model = net(nn.Sequential(nn.LazyLinear(C), nn.LazyLinear(C)))
    with pytest.raises(VitscopeError, match=r"'blocks.1.branch.0' .* lazy.*run the network once"):
        read(model)
    assert type(model.blocks[1].branch[0]) is nn.LazyLinear
    with torch.no_grad():
        model(IMAGES)
    assert read(model)


class Observed(nn.Module):
    """Scales by the largest value seen, as an observer of quantization, and counts its passes."""

    def __init__(self, scales: bool = True) -> None:
        super().__init__()
        self.layer, self.scales, self.passes = mlp(), scales, 0
        self.register_buffer("largest", torch.ones(()))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        self.seen += 1
        self.largest.copy_(0.5 * self.largest + 0.5 * x.detach().abs().amax())
        x = self.layer(x)
        return x / self.largest if self.scales else x


@pytest.mark.parametrize("scales", [True, False])
def test_buffers_that_a_pass_changes_are_as_before(scales: bool) -> None:
    model = net(Observed(scales))
    before = {name: (each, each.clone()) for name, each in model.named_buffers()}
    scope = look(model)
    assert len(scope.table("feature_variance")) == 4
    after = dict(model.named_buffers())
    for name, (kept, value) in before.items():
        assert after[name] is kept
        assert torch.equal(kept, value), name
    assert model.blocks[1].branch.passes == 0
    # What a pass changes is told where it changes what the network says, and by its name.
    said = [each for each in scope.warnings if "blocks.1.branch.largest" in each]
    assert len(said) == len(scope.warnings) == int(scales)


class Sometimes(nn.Module):
    """Leaves its branch out in one of eight passes, in evaluation too."""

    def __init__(self, by: str) -> None:
        super().__init__()
        self.branch, self.by = mlp(), by

    def forward(self, x: Tensor) -> Tensor:
        drawn = torch.rand(()).item() if self.by == "torch" else random.random()
        return self.branch(x) if drawn > 0.125 else x


@pytest.mark.parametrize("by", ["torch", "python"])
@pytest.mark.parametrize("seed", range(4))
def test_layers_that_are_dropped_now_and_then_are_told(by: str, seed: int) -> None:
    model = net(Sometimes(by))
    torch.manual_seed(seed)
    random.seed(seed)
    try:
        (warning,) = look(model).warnings
    except VitscopeError as error:
        warning = str(error)
        assert "does other things for other images" in warning
        return
    assert re.search(r"differ, from the module '[^']*blocks\.[12]", warning)


@pytest.mark.parametrize(
    "make", [torch.jit.script, lambda m: torch.jit.freeze(torch.jit.script(m))]
)
def test_scripted_networks_are_refused_in_a_sentence(make: Callable[[nn.Module], Any]) -> None:
    model = nn.Sequential(nn.Conv2d(3, C, 4, 4), nn.Flatten(), nn.Linear(16 * C, 5)).eval()
    with pytest.raises(VitscopeError, match="give the network that was scripted"):
        look(make(model))


class Outside(nn.Module):
    """An MLP whose result leaves torch, and comes back."""

    def __init__(self, by: str) -> None:
        super().__init__()
        self.layer, self.by = mlp(), by

    def forward(self, x: Tensor) -> Tensor:
        f = self.layer(x)
        if self.by == "numpy":
            return torch.from_numpy(f.detach().numpy().copy())
        if self.by == "tolist":
            return torch.tensor(f.tolist())
        return f / f.abs().amax().item() if self.by == "item" else f / f.numel()


@pytest.mark.parametrize("by", ["numpy", "tolist", "item"])
def test_what_leaves_torch_is_told(by: str) -> None:
    scope = look(net(Outside(by)))
    (warning,) = [each for each in scope.warnings if "NumPy or Python" in each]
    # Its sum, or the operation that takes the number.
    assert ("in 'blocks.1' " if by != "item" else "in 'blocks.1.branch' ") in warning


def test_what_stays_in_torch_is_not() -> None:
    assert look(net(Outside("torch"))).warnings == []


class Choosing(nn.Module):
    """Needs values to run, but takes no number of the images."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x if x.isfinite().all() else x


def test_a_check_of_values_is_no_number_taken() -> None:
    assert look(net(Choosing())).warnings == []


def test_a_scope_says_how_much_is_read() -> None:
    assert look(net(mlp())).read == "3 of 3 sums, 100% of the operations"
