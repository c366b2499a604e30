"""The second reading is right where a hand can compute it, and finds what is wrong."""

import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.helpers.toys import C, Net, Residual, Tokens, mlp
from tests.second.catalog import Logits
from tests.second.comparing import FAILED, RIGHT, TOLD, WRONG, compare, differences
from tests.second.reading import Reading, read_softmaxes

IMAGES = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.project = nn.Linear(C, 3 * C), nn.Linear(C, C)

    def weights(self, x: Tensor) -> Tensor:
        q, k, _ = self.qkv(x).chunk(3, -1)
        return (q @ k.mT / C**0.5).softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.project(self.weights(x) @ self.qkv(x).chunk(3, -1)[2])


def transformer(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    net = Net(Tokens(), Residual(Attention()), Residual(mlp()), Residual(mlp()))
    return Logits(net.eval(), IMAGES)


@torch.no_grad()
def test_ratios_lesions_and_entropies_by_hand() -> None:
    model = transformer()
    reading, (softmax,) = Reading(model, IMAGES), read_softmaxes(model, IMAGES)
    assert [(each.meets, each.expected) for each in reading.sums] == [(True, True)] * 3
    x = model.network.stem(IMAGES)
    weights = model.network.blocks[0].branch.weights(model.network.blocks[0].norm(x)).double()
    assert softmax.entropy == pytest.approx(float(-(weights * weights.log()).sum(-1).mean()))
    assert softmax.rows == (6, 16, 16)
    assert reading.graph.attends(softmax.call)
    for each, block in zip(reading.sums, model.network.blocks, strict=True):
        stream, branch = x, block.branch(block.norm(x))
        (operand,) = (operand for operand in each.operands if operand.same)
        logs = [side.double().flatten(1).norm(dim=1).log() for side in (stream, branch)]
        ratio = float((logs[0] - logs[1]).mean().exp())
        assert any(got == pytest.approx(ratio, rel=1e-5) for got in operand.ratios)
        add, block.add = block.add, lambda stream, branch: stream + 0 * branch
        torch.testing.assert_close(reading.without_rest(each, operand), model(IMAGES))
        block.add = add
        x = block(x)
    torch.testing.assert_close(reading.logits, model(IMAGES), rtol=0, atol=0)


class InPlace(nn.Module):
    """Writes its branch into a part of the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = mlp()

    def forward(self, x: Tensor) -> Tensor:
        x = x.clone()
        x[:, 1:] += self.branch(x)[:, 1:]
        return x


class Beside(nn.Module):
    """A pool minus the stream, and a branch that is added twice over, in one sum."""

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.branch = nn.AvgPool1d(3, 1, 1), mlp()

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.pool(x.mT).mT
        return x + (pooled - x) + torch.stack([self.branch(x), self.branch(-x)]).sum(0)


@pytest.mark.parametrize(("block", "verdict"), [(InPlace, TOLD), (Beside, RIGHT)])
def test_sums_in_odd_spellings_agree(block: type[nn.Module], verdict: str) -> None:
    torch.manual_seed(0)
    net = Net(Tokens(), Residual(mlp()), block(), Residual(mlp())).eval()
    outcome = compare(Logits(net, IMAGES), IMAGES)
    assert (outcome.verdict, outcome.silent) == (verdict, [])


def test_what_is_read_of_another_network_is_wrong() -> None:
    """The tables of one network are not those of another with the same modules."""
    one, other = transformer(0), transformer(1)
    labels = one(IMAGES).argmax(1)
    with torch.no_grad():
        scope = vitscope.look(one, IMAGES, labels, analysis={"bootstrap": {"resamples": 100}})
        assert [*differences(scope, one, IMAGES, labels)] == []
        found = {what for what, _ in differences(scope, other, IMAGES, labels)}
    assert found == {"ratio", "entropy", "missing", "attention missing"}


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first, self.head = Tokens(), Residual(mlp()), nn.Linear(2 * C, 5)
        self.left, self.right = Residual(mlp()), Residual(mlp())

    def forward(self, images: Tensor) -> Tensor:
        x = self.first(self.stem(images))
        return self.head(torch.cat([self.left(x), self.right(x)], 2).mean(1))


def test_sums_that_paths_lead_around_are_no_sums_of_all() -> None:
    torch.manual_seed(0)
    model = Logits(Towers().eval(), IMAGES)
    with torch.no_grad():
        sums = Reading(model, IMAGES).sums
    assert [each.meets for each in sums] == [True, False, False]
    assert compare(model, IMAGES).verdict in (RIGHT, TOLD)


def test_a_verdict_is_wrong_where_nothing_tells() -> None:
    assert WRONG in FAILED
    assert RIGHT not in FAILED
