"""Branches against the same networks without them, written by hand."""

from collections.abc import Callable

import einops
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import vitscope
from tests.helpers.toys import C, Net, Residual, Tokens, mlp

IMAGES = torch.randn(24, 3, 16, 16, generator=torch.Generator().manual_seed(1))
# Ratios of norms in float64, of maps in float32.
CLOSE = 1e-5
Sides = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def pool(x: Tensor) -> Tensor:
    return F.avg_pool1d(x.mT, 3, 1, 1, count_include_pad=False).mT


class Written(nn.Module):
    """Adds as `add` does; without its branch it is what `sides` calls the stream."""

    def __init__(self, add: Callable[[Tensor, Tensor], Tensor], sides: Sides, mixes: str) -> None:
        super().__init__()
        self.add, self.sides, self.on = add, sides, True
        self.branch = mlp() if mixes == "mlp" else None
        self.ratio = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        f = pool(x) if self.branch is None else self.branch(x)
        stream, branch = self.sides(x, f)
        norms = (side.detach().double().flatten(1).norm(dim=1).log() for side in (stream, branch))
        if self.on and not x.is_meta:
            self.ratio.copy_((next(norms) - next(norms)).mean().exp())
        return self.add(x, f) if self.on else stream


def plain(x: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    return x, f - x


def scaled(x: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    return x, 0.3 * (f - x)


# How people write it, and what of it is stream and branch.
SPELLINGS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Sides]] = {
    "x + (f - x)": (lambda x, f: x + (f - x), plain),
    "(f - x) + x": (lambda x, f: (f - x) + x, plain),
    "x + 0.3 * (f - x)": (lambda x, f: x + 0.3 * (f - x), scaled),
    "x - 0.3 * (x - f)": (lambda x, f: x - 0.3 * (x - f), scaled),
    "add alpha": (lambda x, f: torch.add(x, f - x, alpha=0.3), scaled),
    "addcmul": (lambda x, f: torch.addcmul(x, f - x, torch.full((C,), 0.3)), scaled),
    "stack": (lambda x, f: torch.stack([x, 0.3 * (f - x)]).sum(0), scaled),
    "by channels": (lambda x, f: x + torch.full((C,), 0.3) * (f - x), scaled),
    "straight through": (lambda x, f: x + (f - x).detach(), plain),
    "of the stream too": (lambda x, f: x + 0.5 * (x + f), lambda x, f: (x, 0.5 * (x + f))),
    "interpolated": (
        lambda x, f: 0.7 * x + 0.3 * f,
        lambda x, f: (0.7 * x, 0.3 * f),
    ),
    "einops": (
        lambda x, f: einops.reduce([x, f], "k n l c -> n l c", "sum"),
        lambda x, f: (x, f),
    ),
}


def measured(model: nn.Module, labels: Tensor) -> vitscope.Scope:
    return vitscope.look(model, IMAGES, labels, analysis={"bootstrap": {"resamples": 100}})


@pytest.mark.parametrize("mixes", ["mlp", "pool"])
@pytest.mark.parametrize("spelling", SPELLINGS)
@torch.no_grad()
def test_where_one_side_is_the_stream_the_other_is_the_branch(spelling: str, mixes: str) -> None:
    torch.manual_seed(0)
    written = Written(*SPELLINGS[spelling], mixes)
    model = Net(Tokens(), Residual(mlp()), written, Residual(mlp())).eval()
    model.head.weight.mul_(10)
    labels = model(IMAGES).argmax(1)
    ratio = float(written.ratio)
    written.on = False
    without = float((model(IMAGES).argmax(1) == labels).double().mean())
    written.on = True
    scope = measured(model, labels)
    assert scope.warnings == []
    blocks = scope.table("blocks").set_index("index")
    assert blocks["name"].tolist() == ["stem", "blocks.0", "blocks.1", "blocks.2"]
    assert blocks["kind"][2] == mixes
    assert scope.table("lesion").set_index("index")["accuracy"][2] == without
    found = scope.table("skip_ratio").set_index("index")["ratio"][2]
    assert found == pytest.approx(ratio, rel=CLOSE)


class OptionA(nn.Module):
    """A block of He et al.'s ResNets for CIFAR: its shortcut is cut, and padded with zeros."""

    def __init__(self, wide: int, stride: int = 2) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(C, wide, 3, stride, 1), nn.BatchNorm2d(wide)
        self.pad, self.stride, self.on = (wide - C) // 2, stride, True

    def forward(self, x: Tensor) -> Tensor:
        short = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(self.norm(self.conv(x)) + short if self.on else short)


class Residuals(nn.Module):
    def __init__(self, wide: int) -> None:
        super().__init__()
        self.stem, self.block = nn.Conv2d(3, C, 3, padding=1), OptionA(wide)
        self.head = nn.Linear(wide, 5)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.block(self.stem(images).relu()).mean((2, 3)))


@pytest.mark.parametrize("wide", [C, 2 * C, 4 * C])
@torch.no_grad()
def test_a_shortcut_that_is_cut_and_padded_is_no_identity(wide: int) -> None:
    """Four times as many channels at a quarter of the positions are as many values."""
    torch.manual_seed(0)
    model = Residuals(wide).eval()
    model.head.weight.mul_(30)
    labels = model(IMAGES).argmax(1)
    model.block.on = False
    without = float((model(IMAGES).argmax(1) == labels).double().mean())
    model.block.on = True
    (found,) = measured(model, labels).table("lesion")["accuracy"]
    assert found == without


@torch.no_grad()
def test_a_hook_of_the_user_changes_an_output_once() -> None:
    torch.manual_seed(0)
    model = Net(Tokens(), *(Residual(mlp()) for _ in range(4))).eval()
    model.head.weight.mul_(10)
    for block in model.blocks:
        block.branch.register_forward_hook(lambda _, args, output: 3 * output)
    labels = model(IMAGES).argmax(1)
    without = []
    for block in model.blocks:
        block.add = lambda x, f: x
        without.append(float((model(IMAGES).argmax(1) == labels).double().mean()))
        block.add = torch.add
    assert measured(model, labels).table("lesion")["accuracy"].tolist() == without


class Turned(nn.Module):
    """Tokens turned into complex ones for its blocks, which are added before the head is real."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = Tokens()
        self.turn = nn.Parameter(torch.randn(2, C, C, dtype=torch.complex64))
        self.head, self.ratios = nn.Linear(2 * C, 5), []

    def forward(self, images: Tensor) -> Tensor:
        x = self.tokens(images).to(torch.complex64)
        ratios = []
        for turn in self.turn:
            f = torch.view_as_complex(torch.view_as_real(x @ turn).relu())
            ratios.append((x.flatten(1).norm(dim=1) / f.flatten(1).norm(dim=1)).log().mean().exp())
            x = x + f
        if not images.is_meta:
            self.ratios = torch.stack(ratios).tolist()
        return self.head(torch.view_as_real(x).flatten(2).mean(1))


@torch.no_grad()
def test_a_complex_stream_has_the_ratios_of_complex_norms() -> None:
    torch.manual_seed(0)
    model = Turned().eval()
    model(IMAGES)
    true = model.ratios
    scope = measured(model, model(IMAGES).argmax(1))
    assert scope.table("skip_ratio")["ratio"].tolist() == pytest.approx(true, rel=CLOSE)
