from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import vitscope
from tests.helpers.kinds import EncoderViT
from tests.helpers.networks import described, read
from tests.helpers.toys import C, Net, Residual, Tokens, mlp
from vitscope.errors import VitscopeError
from vitscope.measures.branches.lesion import lesioned
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import describe_misread_attentions
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.running.joins import prove_capture

IMAGES = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
SIDES = ["after", "before"]


class Block(nn.Module):
    """A block of a ViT that normalizes its sums, written by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))
        self.norm1, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.mlp(x))


class HandWritten(EncoderViT):
    def __init__(self) -> None:
        super().__init__(batch_first=True, norm_first=False)
        self.encoder = nn.Sequential(Block(), Block())


def network(kind: str) -> nn.Module:
    torch.manual_seed(0)
    model = HandWritten() if kind == "by hand" else EncoderViT(kind == "batch first", False)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def listed(model: nn.Module, **where: Any) -> Blocks:
    return list_blocks("mine", model, described(16) | {"classes": 5}, **where)


def by_hooks(model: nn.Module, side: str) -> list[Tensor]:
    """What plain hooks see before or after the norms, without the class token, as maps."""
    seen: list[Tensor] = []
    norms = [each for name, each in model.named_modules() if name.endswith(("norm1", "norm2"))]
    hooks = [
        each.register_forward_hook(
            lambda _, given, result: seen.append((result if side == "after" else given[0]).clone())
        )
        for each in norms
    ]
    with torch.no_grad(), without_fast_path():
        model(IMAGES)
    for hook in hooks:
        hook.remove()
    if not model.batch_first:
        seen = [tokens.transpose(0, 1) for tokens in seen]
    return [tokens[:, 1:].transpose(1, 2).unflatten(2, (2, 2)) for tokens in seen]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["by hand", "batch first", "tokens first"])
def test_values_are_those_of_plain_hooks(kind: str, side: str) -> None:
    model = network(kind)
    blocks = listed(model, norms=side)
    assert blocks.table["norm"].fillna("").tolist() == ["", *[side] * 4]
    assert blocks.table["kind"].tolist() == ["stem", "msa", "mlp", "msa", "mlp"]
    _, maps = read(model, blocks.points, IMAGES)
    expected = by_hooks(model, side)
    assert len(expected) == len(maps[1:]) == 4
    assert all(map(torch.equal, maps[1:], expected))


@pytest.mark.parametrize("kind", ["by hand", "batch first"])
def test_branches_and_attention_are_the_same_on_both_sides(kind: str) -> None:
    model = network(kind)
    found = []
    for side in SIDES:
        points = listed(model, norms=side).points
        assert prove_capture(model, points, IMAGES).wrong == []
        joins = [point.join for point in points if point.join is not None]
        attentions = find_attention(model, described(16), points)
        assert len(attentions.attentions) == 2
        assert describe_misread_attentions(model, attentions.attentions, IMAGES) == []
        found.append(lesioned(model, joins, IMAGES)[1])
    assert len(found[0]) == 4
    assert all(map(torch.equal, *found))


def test_a_lesion_leaves_the_norm_of_the_stream() -> None:
    model = network("by hand")
    joins = [point.join for point in listed(model, norms="before").points if point.join]
    _, without = lesioned(model, joins, IMAGES)
    last = model.encoder[1]
    with torch.no_grad():
        tokens = model.patches(IMAGES).flatten(2).transpose(1, 2)
        tokens = torch.cat([model.token.expand(len(IMAGES), -1, -1), tokens], dim=1)
        x = model.encoder[0](tokens)
        x = last.norm1(x + last.attention(x, x, x, need_weights=False)[0])
        expected = model.head(last.norm2(x)[:, 0])
    torch.testing.assert_close(without[-1], expected, rtol=1e-6, atol=1e-6)


class Centred(nn.Module):
    """A layer norm that takes the mean once, as the one of the authors of MetaFormer."""

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()


class Variance(nn.Module):
    """The same of what torch computes at once."""

    def forward(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, -1, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + 1e-6)


class Means(nn.Module):
    """Adds the mean of all tokens, behind a layer: this is a branch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(C, C)

    def forward(self, x: Tensor) -> Tensor:
        return x - self.layer(x).mean(1, keepdim=True)


@pytest.mark.parametrize("norm", [Centred, Variance])
def test_a_norm_by_hand_between_blocks_is_no_unit(norm: Callable[[], nn.Module]) -> None:
    model = Net(Tokens(), norm(), Residual(mlp()), norm(), Means(), norm(), Residual(mlp()))
    found = list_blocks("net", model.eval(), described(16))
    assert [each.name for each in found.points] == ["stem", "blocks.1", "blocks.3", "blocks.5"]
    assert found.read == "3 of 3 sums, 100% of the operations"
    assert found.warnings == []


@pytest.mark.parametrize("norm", [Centred, Variance])
def test_a_norm_of_sums_by_hand(norm: Callable[[], nn.Module]) -> None:
    class After(Residual):
        def forward(self, x: Tensor) -> Tensor:
            return norm()(x + self.branch(x))

    model = Net(Tokens(), After(mlp()), After(mlp())).eval()
    found = list_blocks("net", model, described(16))
    assert found.table["norm"].tolist()[1:] == ["after", "after"]
    with torch.no_grad():
        expected = model.blocks(model.stem(IMAGES)).mT.unflatten(2, (4, 4))
    _, maps = read(model, found.points, IMAGES)
    torch.testing.assert_close(maps[-1], expected, rtol=0, atol=0)


def test_a_network_that_normalizes_no_sums_has_no_side() -> None:
    model = EncoderViT(batch_first=True, norm_first=True).eval()
    assert listed(model).table["norm"].isna().all()
    sentence = r"models.mine: norms: no block of the network normalizes the sum of stream and bra"
    with pytest.raises(VitscopeError, match=sentence):
        listed(model, norms="before")


def test_points_of_a_study_say_their_side_themselves() -> None:
    model = network("by hand")
    points = [{"module": "encoder.*.norm2", "at": "input"}, {"module": "encoder.*.norm1"}]
    assert listed(model, points=points).table["norm"].tolist() == ["after", "before"] * 2
    with pytest.raises(VitscopeError, match=r"models.mine: norms: `points` say themselves on"):
        listed(model, points=points, norms="before")


def test_look_and_blocks_read_on_the_side_that_is_asked_for() -> None:
    model = network("by hand")
    for side in SIDES:
        scope = vitscope.look(model, IMAGES, norms=side)
        assert scope.table("blocks")["norm"].fillna("").tolist() == ["", *[side] * 4]
        expected = by_hooks(model, side)
        assert all(
            torch.equal(torch.as_tensor(maps), hooked)
            for (_, maps), hooked in zip([*scope.maps()][1:], expected, strict=True)
        )
        x = IMAGES
        for block in vitscope.blocks(model, IMAGES, norms=side):
            x = block(x)
        with torch.no_grad(), without_fast_path():
            assert torch.equal(x, model(IMAGES))
    with pytest.raises(VitscopeError, match=r"look: norms: .*'behind'"):
        vitscope.look(model, IMAGES, norms="behind")
