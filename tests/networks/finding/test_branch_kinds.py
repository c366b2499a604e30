"""Kinds of branches: a recurrence over positions is no convolution, both at once are parallel."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.helpers.networks import described
from vitscope.networks.finding.blocks import list_blocks

C = 8


class Scan(nn.Module):
    """A state-space model: a convolution, then a recurrence over tokens, spelled in some way."""

    def __init__(self, how: str, convolves: bool = True) -> None:
        super().__init__()
        self.how, self.convolves = how, convolves
        self.enter, self.leave = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.conv = nn.Conv1d(C, C, 3, padding=1, groups=C)

    def forward(self, x: Tensor) -> Tensor:
        u, gate, decay = self.enter(x).chunk(3, -1)
        if self.convolves:
            u = self.conv(u.transpose(1, 2)).transpose(1, 2)
        return self.leave(self.states(u, torch.sigmoid(decay)) * functional.silu(gate))

    def states(self, u: Tensor, decay: Tensor) -> Tensor:
        if self.how == "cumulative sum":
            return u.cumsum(1)
        if self.how == "doubling":
            shift = 1
            while shift < u.shape[1]:
                back = functional.pad(u, (0, 0, shift, 0))[:, : u.shape[1]]
                u, shift = u + decay**shift * back, 2 * shift
            return u
        state, states = torch.zeros_like(u[:, 0]), []
        for now, keep in zip(u.unbind(1), decay.unbind(1), strict=True):
            state = keep * state + now if self.how == "loop" else torch.lerp(now, state, keep)
            states.append(state)
        return torch.stack(states, 1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(C, 3 * C), nn.Linear(C, C)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        out: Tensor = self.proj((q @ k.transpose(1, 2)).softmax(-1) @ v)
        return out


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(C, 2 * C), nn.GELU(), nn.Linear(2 * C, C))


class Net(nn.Module):
    def __init__(self, *branches: nn.Module, add: Callable[..., Tensor] = lambda *all: sum(all)):
        super().__init__()
        self.stem, self.add = nn.Conv2d(3, C, 4, 4), add
        self.norm, self.branches = nn.LayerNorm(C), nn.ModuleList(branches)
        self.last, self.head = mlp(), nn.Linear(C, 5)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images).flatten(2).transpose(1, 2)
        y = self.norm(x)
        x = self.add(x, *(branch(y) for branch in self.branches))
        x = x + self.last(x)
        logits: Tensor = self.head(x.mean(1))
        return logits


def kinds(model: nn.Module, size: int = 32) -> list[str]:
    return [point.kind for point in list_blocks("net", model.eval(), described(size)).points]


@pytest.mark.parametrize("convolves", [True, False])
@pytest.mark.parametrize("how", ["loop", "lerp", "cumulative sum", "doubling"])
@pytest.mark.parametrize("size", [16, 32])
def test_a_recurrence_over_positions_is_a_kind_of_its_own(
    how: str, convolves: bool, size: int
) -> None:
    assert kinds(Net(Scan(how, convolves)), size) == ["stem", "ssm", "mlp"]


@pytest.mark.parametrize(
    "add",
    [
        lambda x, a, b: (x + a) + b,
        lambda x, a, b: x + (a + b),
        lambda x, a, b: b + (a + x),
        lambda x, a, b: x + 0.5 * (a + b),
    ],
)
def test_attention_beside_an_mlp_is_parallel(add: Callable[..., Tensor]) -> None:
    assert kinds(Net(Attention(), mlp(), add=add)) == ["stem", "parallel", "mlp"]


def test_attentions_beside_each_other_are_attention() -> None:
    assert kinds(Net(Attention(), Attention())) == ["stem", "msa", "mlp"]


def test_many_scaled_sums_are_no_recurrence() -> None:
    """As a weighted mean of what several layers return, or the GELU of an MLP by hand."""

    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(C, C) for _ in range(8))

        def forward(self, x: Tensor) -> Tensor:
            outputs = [layer(x) for layer in self.layers]
            y: Tensor = sum(0.5 * each for each in outputs)  # type: ignore[assignment]
            return 0.5 * y * (1 + torch.tanh(0.8 * (y + 0.04 * y**3)))

    assert kinds(Net(Weighted())) == ["stem", "mlp", "mlp"]
