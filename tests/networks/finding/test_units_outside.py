"""Units around which other paths lead are counted and told, and depth is that of the network."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.helpers.networks import described
from tests.helpers.toys import C, Net, Residual, Tokens, mlp
from vitscope.errors import VitscopeError
from vitscope.networks.finding.blocks import Blocks, list_blocks


def listed(model: nn.Module) -> Blocks:
    return list_blocks("net", model.eval(), described(16))


class Several(nn.Module):
    """Blocks whose results `join` takes all together, from the block `first` on."""

    def __init__(self, blocks: int, first: int, join: Callable[[list[Tensor]], Tensor]) -> None:
        super().__init__()
        self.stem, self.join, self.first = Tokens(), join, first
        self.blocks = nn.ModuleList(Residual(mlp()) for _ in range(blocks))
        self.head = nn.LazyLinear(5)

    def forward(self, images: Tensor) -> Tensor:
        x, kept = self.stem(images), []
        for block in self.blocks:
            x = block(x)
            kept.append(x)
        return self.head(self.join([each.mean(1) for each in kept[self.first :]]))


def concatenated(each: list[Tensor]) -> Tensor:
    return torch.cat(each, 1)


def summed(each: list[Tensor]) -> Tensor:
    return sum(each[1:], each[0])


@pytest.mark.parametrize("join", [concatenated, summed])
@pytest.mark.parametrize(("blocks", "first"), [(6, 2), (6, 0), (3, 1), (12, 8), (14, 0)])
def test_a_head_that_reads_several_blocks(
    blocks: int, first: int, join: Callable[[list[Tensor]], Tensor]
) -> None:
    """As DINOv2's linear head on four blocks, and as an exit behind each block.

    The head reads the stream, and is no stream: all blocks are units.
    """
    model = Several(blocks, first, join).eval()
    model(torch.randn(2, 3, 16, 16))
    found = listed(model)
    assert [point.name for point in found.points[1:]] == [f"blocks.{i}" for i in range(blocks)]
    assert found.read == f"{blocks} of {blocks} sums, 100% of the operations"
    assert found.warnings == []
    assert found.table["depth"].tolist() == pytest.approx([i / blocks for i in range(blocks + 1)])
    assert {point.kind for point in found.points[1:]} == {"mlp"}


def test_lesions_and_ratios_of_blocks_that_a_head_reads() -> None:
    """The head reads the stream without the branch, at each depth behind it."""
    torch.manual_seed(0)
    model, images = Several(4, 1, concatenated).eval(), torch.randn(64, 3, 16, 16)
    with torch.no_grad():
        model(images[:2])
        for block in model.blocks:
            block.branch[2].weight.mul_(4)
        model.head.bias.sub_(model(images).mean(0))
        labels = model(images).argmax(1)
        scope = vitscope.look(model, images, labels)
        lesions = scope.table("lesion").set_index("index")["accuracy"]
        ratios = scope.table("skip_ratio").set_index("index")["ratio"]
        x = model.stem(images)
        for number, block in enumerate(model.blocks, 1):
            branch = block.branch(block.norm(x))
            norms = [each.double().flatten(1).norm(dim=1).log() for each in (x, branch)]
            assert ratios[number] == pytest.approx(
                float((norms[0] - norms[1]).mean().exp()), rel=1e-5
            )
            x = x + branch
            add, block.add = block.add, lambda stream, branch: stream + 0 * branch
            right = (model(images).argmax(1) == labels).double().mean()
            block.add = add
            assert lesions[number] == pytest.approx(float(right), abs=1e-9)
    assert lesions.nunique() > 1


class Exits(nn.Module):
    """Blocks, each with an exit; `work` is what an exit does with tokens before their mean."""

    def __init__(self, work: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.stem = Tokens()
        self.blocks = nn.ModuleList(Residual(mlp()) for _ in range(4))
        self.exits = nn.ModuleList(nn.Sequential(work(), Mean(), nn.Linear(C, 5)) for _ in range(4))

    def forward(self, images: Tensor) -> Tensor:
        x, logits = self.stem(images), 0
        for block, leave in zip(self.blocks, self.exits, strict=True):
            x = block(x)
            logits = logits + leave(x)
        return logits


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1)


def normed() -> nn.Module:
    return nn.LayerNorm(C)


def works() -> nn.Module:
    return nn.Linear(C, C)


def test_exits_read_the_stream_and_what_works_on_maps_is_told() -> None:
    found = listed(Exits(normed))
    assert found.read == "4 of 4 sums, 100% of the operations"
    assert found.warnings == []
    # What an exit computes is counted with the block behind it; the last is the head.
    exit_costs = [5 * C + 5 + 2 * C] * 3
    block = 2 * C * C * 2 + 3 * C + 2 * C
    assert found.table["parameters"].tolist()[1:] == [block, *(block + each for each in exit_costs)]
    found = listed(Exits(works))
    assert found.read.startswith("1 of 4 sums, ")
    (warning,) = found.warnings
    assert " 3 sums are in no figure, from 'blocks.1' to 'blocks.3'" in warning


class WithFirst(nn.Module):
    """Blocks whose branches all take something of the first one."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.stem, self.head = Tokens(), nn.Linear(C, 5)
        self.blocks = nn.ModuleList(Residual(mlp()) for _ in range(blocks))

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        first = x.sigmoid()
        for block in self.blocks:
            x = x + block.branch(x * first)
        return self.head(x.mean(1))


def test_branches_that_all_take_a_value_of_the_first() -> None:
    """As residual values and conditioning do: the sums are on the way of one cut point."""
    found = listed(WithFirst(5))
    assert len(found.points) == 2
    assert found.read.startswith("1 of 5 sums, ")
    assert found.table["depth"].tolist() == pytest.approx([0, 1])
    (warning,) = found.warnings
    assert " 4 sums are in no figure, from " in warning


class Towers(nn.Module):
    def __init__(self, blocks: int = 2) -> None:
        super().__init__()
        self.stem, self.head = Tokens(), nn.Linear(2 * C, 5)
        self.first = Residual(mlp())
        towers = (nn.Sequential(*(Residual(mlp()) for _ in range(blocks))) for _ in "lr")
        self.left, self.right = towers

    def forward(self, images: Tensor) -> Tensor:
        x = self.first(self.stem(images))
        return self.head(torch.cat([self.left(x), self.right(x)], 2).mean(1))


def test_two_towers() -> None:
    found = listed(Towers())
    assert found.read.startswith("1 of 5 sums, ")
    assert found.table["depth"].tolist() == pytest.approx([0, 1 / 5])
    (warning,) = found.warnings
    assert " 4 sums are in no figure, from 'left.0' to 'right.1'" in warning


class Turning(nn.Module):
    """Turns pairs of channels, as rotary positions do: a sum that is of no branch."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 0.6 + torch.cat([-x[..., C // 2 :], x[..., : C // 2]], -1) * 0.8


@pytest.mark.parametrize("between", [Turning(), nn.Identity()])
def test_nothing_is_told_of_a_network_that_is_read_whole(between: nn.Module) -> None:
    inner = nn.Sequential(nn.Linear(C, C), Residual(mlp()), nn.Linear(C, C))
    found = listed(Net(Tokens(), Residual(mlp()), between, Residual(inner), Residual(mlp())))
    sums = [point for point in found.points if point.join]
    assert found.read == f"{len(sums)} of {len(sums)} sums, 100% of the operations"
    assert found.warnings == []
    assert found.table["depth"].tolist()[-1] == 1


def test_a_network_of_which_a_small_part_is_found_is_still_refused() -> None:
    model = Towers(blocks=7)
    with pytest.raises(VitscopeError, match="only part of the network was found"):
        listed(model)


class Partial(nn.Module):
    """Units of half of the channels, beside the others: as in a cross-stage partial network."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(C // 2, C // 2, 3, padding=1) for _ in range(3))
        self.last = nn.Sequential(nn.Conv2d(C, C, 1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        kept, x = x.chunk(2, 1)
        for conv in self.convs:
            x = x + conv(x).relu()
        return self.last(torch.cat([kept, x], 1))


def test_units_before_a_cut_at_a_layer() -> None:
    stages = nn.Sequential(Partial(), Partial())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(C, 5))
    model = nn.Sequential(nn.Sequential(nn.Conv2d(3, C, 2, 2), nn.ReLU()), stages, head)
    found = listed(model)
    missed = 6 if len(found.points) > 1 else 0
    assert found.read.startswith(f"0 of {missed} sums")
    assert all("3 sums are in no figure" in warning for warning in found.warnings)
    assert len(found.warnings) == 2


class Chosen(nn.Module):
    """Blocks of the best tokens, which are put back before the others: as in UniFormer-Light."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Residual(mlp()), Residual(mlp()))

    def forward(self, x: Tensor) -> Tensor:
        order = x.norm(dim=-1).argsort(1)[..., None].expand_as(x)
        best, others = x.gather(1, order).split(8, 1)
        return torch.cat([self.blocks(best), others], 1).gather(1, order.argsort(1))


def test_units_of_chosen_tokens_that_other_tokens_go_around() -> None:
    """Nobody can tell where these tokens are; they count all the same, and so does the depth."""
    found = listed(Net(Tokens(), Residual(mlp()), Chosen(), Residual(mlp())))
    assert [point.name for point in found.points] == ["stem", "blocks.0"]
    assert found.read.startswith("1 of 4 sums, ")
    assert found.table["depth"].tolist() == pytest.approx([0, 1 / 4])
    told = " ".join(found.warnings)
    assert " 2 sums are in no figure, from 'blocks.1.blocks.0' to 'blocks.1.blocks.1'" in told
    assert " 1 sums are in no figure, from 'blocks.2' to 'blocks.2'" in told
