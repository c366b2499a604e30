from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import vitscope
from tests.helpers.networks import described, read
from tests.helpers.toys import C, Net, Residual, mlp
from vitscope.errors import VitscopeError
from vitscope.measures.branches.lesion import lesioned
from vitscope.networks.finding.blocks import Blocks, list_blocks

IMAGES = torch.randn(6, 3, 32, 32, generator=torch.Generator().manual_seed(1))
TOKENS = 64
ORDER = torch.randperm(TOKENS, generator=torch.Generator().manual_seed(2))


class Between(nn.Module):
    """Something between two blocks."""

    def __init__(self, do: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.do = do

    def forward(self, x: Tensor) -> Tensor:
        return self.do(x)


class Patches(nn.Module):
    """Tokens of patches of 4 pixels, by unfolding; or of the image beside four shifted ones."""

    def __init__(self, shifted: bool = False) -> None:
        super().__init__()
        self.shifted, self.layer = shifted, nn.Linear(240 if shifted else 48, C)

    def forward(self, images: Tensor) -> Tensor:
        if self.shifted:
            sides = [(2, -2, 2, -2), (-2, 2, 2, -2), (2, -2, -2, 2), (-2, 2, -2, 2)]
            images = torch.cat([images, *(functional.pad(images, side) for side in sides)], 1)
        return self.layer(functional.unfold(images, 4, stride=4).transpose(1, 2))


class MeanFirst(Patches):
    """Patches behind a class token that is their mean."""

    def forward(self, images: Tensor) -> Tensor:
        tokens = super().forward(images)
        return torch.cat([tokens.mean(1, keepdim=True), tokens], 1)


def listed(model: nn.Module) -> Blocks:
    return list_blocks("net", model.eval(), described(32))


def names(blocks: Blocks) -> list[str]:
    return [point.name for point in blocks.points]


@pytest.mark.parametrize("make", [Patches, lambda: Patches(shifted=True), MeanFirst])
@torch.no_grad()
def test_patches_are_followed_however_they_are_cut(make: Callable[[], nn.Module]) -> None:
    model = Net(make(), Residual(mlp()), Residual(mlp())).eval()
    blocks = listed(model)
    assert names(blocks) == ["stem", "blocks.0", "blocks.1"]
    assert blocks.warnings == []
    _, maps = read(model, blocks.points, IMAGES)
    tokens = model.stem(IMAGES)[:, -TOKENS:]
    torch.testing.assert_close(maps[0], tokens.transpose(1, 2).reshape(6, C, 8, 8), rtol=0, atol=0)


@pytest.mark.parametrize("twice", ["in a row", "under two names"])
@torch.no_grad()
def test_a_network_with_one_module_in_two_places_stays_as_it_was(twice: str) -> None:
    block = Residual(mlp())
    model = Net(Patches(), block, block if twice == "in a row" else Residual(mlp())).eval()
    if twice == "under two names":
        model.other = model.blocks[1]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    logits = model(IMAGES)
    assert len(vitscope.look(model, IMAGES, torch.zeros(6, dtype=torch.int64)).blocks) == 3
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert torch.equal(model(IMAGES), logits)


def placed(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    out[:, ORDER] = x
    return out


def best(x: Tensor) -> Tensor:
    chosen = x.norm(dim=-1).topk(TOKENS // 2).indices
    return x.gather(1, chosen[..., None].expand(-1, -1, C))


LOSES: dict[str, Callable[[Tensor], Tensor]] = {
    "bmm": lambda x: torch.eye(TOKENS)[ORDER] @ x,
    "index_put": placed,
    "gather": best,
    "_fft_r2c": lambda x: torch.fft.irfft(torch.fft.rfft(x, dim=1), n=TOKENS, dim=1),
}


@pytest.mark.parametrize("operation", LOSES)
def test_where_the_places_of_tokens_are_lost_the_module_is_named(operation: str) -> None:
    between = Between(LOSES[operation])
    blocks = listed(Net(Patches(), Residual(mlp()), between, Residual(mlp()), Residual(mlp())))
    assert names(blocks) == ["stem", "blocks.0"]
    (warning,) = blocks.warnings
    assert f"in 'blocks.1' the places of tokens are lost ({operation}): 2 sums" in warning
    assert "from 'blocks.2' to 'blocks.3'" in warning
    # The depth is that of the whole network.
    assert blocks.table["depth"].tolist() == pytest.approx([0, 1 / 3])


def test_what_is_lost_is_told_with_every_value() -> None:
    between = Between(LOSES["bmm"])
    model = Net(Patches(), Residual(mlp()), between, Residual(mlp())).eval()
    scope = vitscope.look(model, IMAGES, torch.zeros(6, dtype=torch.int64))
    assert len(scope.feature_variance) == 2
    (warning,) = scope.warnings
    assert "'blocks.1'" in warning


@torch.no_grad()
def test_a_network_with_a_scripted_module_is_measured() -> None:
    torch.manual_seed(0)
    plain = Net(Patches(), Residual(mlp()), Residual(mlp())).eval()
    blocks = (Residual(torch.jit.script(block.branch)) for block in plain.blocks)
    scripted = Net(plain.stem, *blocks).eval()
    scripted.head = plain.head
    for block, other in zip(scripted.blocks, plain.blocks, strict=True):
        block.norm = other.norm
    found = []
    for model in (plain, scripted):
        joins = [point.join for point in listed(model).points if point.join]
        found.append(lesioned(model, joins, IMAGES)[1])
    assert len(found[0]) == 2
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_a_network_that_is_scripted_itself_is_refused() -> None:
    traced = torch.jit.trace(Net(Patches(), Residual(mlp())).eval(), IMAGES[:2])
    with pytest.raises(VitscopeError, match="give the network that was scripted"):
        vitscope.look(traced, IMAGES, torch.zeros(6, dtype=torch.int64))


class Raw(nn.Module):
    """An MLP of parameters that no module of their own multiplies by."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.unused = nn.Parameter(torch.randn(2 * C, C)), nn.Parameter(torch.zeros(7))
        self.narrow = nn.Linear(2 * C, C)

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.gelu(functional.linear(x, self.wide))
        return functional.linear(hidden, self.narrow.weight, self.narrow.bias)


def test_parameters_are_those_that_operations_read() -> None:
    model = Net(Patches(), Residual(Raw()), Residual(nn.MultiheadAttention(C, 2)))

    def attend(x: Tensor, attention: nn.Module = model.blocks[1].branch) -> Tensor:
        return attention(x, x, x)[0]

    model.blocks[1].branch = Between(attend)
    model.blocks[1].attention = attend.__defaults__[0]
    blocks = listed(model)
    of_raw = 2 * C * C + C * 2 * C + C
    of_attention = 3 * C * C + 3 * C + C * C + C
    of_norm = 2 * C
    expected = [48 * C + C, of_norm + of_raw, of_norm + of_attention]
    np.testing.assert_array_equal(blocks.table["parameters"], expected)
    assert "7 parameters that no operation reads" in blocks.uncovered
