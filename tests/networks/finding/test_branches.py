import re
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tests.helpers.kinds import KINDS, build
from tests.helpers.networks import described, read
from tests.helpers.toys import C, Net, Residual, Tokens, mlp
from tests.helpers.written import FOLDER
from vitscope.errors import VitscopeError
from vitscope.measures.branches.lesion import lesioned
from vitscope.networks.building.networks import logits_of_network, without_fast_path
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import BLOCKS, parse_cut_points, write_cut_points
from vitscope.networks.running.joins import Silencing


def test_many_scaled_sums_are_no_recurrence() -> None:
    """As a weighted mean of what several layers return, or the GELU of an MLP by hand."""

    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(C, C) for _ in range(8))

        def forward(self, x: Tensor) -> Tensor:
            outputs = [layer(x) for layer in self.layers]
            y = sum(0.5 * each for each in outputs)
            return 0.5 * y * (1 + torch.tanh(0.8 * (y + 0.04 * y**3)))

    model = Net(Tokens(), Residual(Weighted()), Residual(mlp())).eval()
    table = list_blocks("net", model, described(32)).table
    assert table["kind"].tolist() == ["stem", "mlp", "mlp"]


EXPECTED = pd.read_csv(FOLDER / "kinds.csv", index_col="network")
# Where a shortcut does more than pass the stream on, or more follows the sum: which operand of the
# sum is the shortcut, as one reads in the code of the network, of cut points by their names.
SHORTCUTS = {
    "xcit": {"": 0},
    "maxvit": {"": 1},
    "coatnet": {"attn$": 0, "": 1},
    "regnet": {"": 1},
    "hiera": {"": 0},
    # The first block of a stage has none: of its two convolutions, that of one pixel stays.
    "repvgg": {"[.]0$": 0, "": 1},
    "nfnet": {"": 1},
    "torchvision resnet": {"": 1},
    "encoder, norm last": {"": 0},
    "encoder, sequence first, norm last": {"": 0},
}


def shortcut(network: str, point: str) -> int:
    return next(n for pattern, n in SHORTCUTS[network].items() if re.search(pattern, point))


@dataclass(frozen=True)
class Case:
    name: str
    model: nn.Module
    blocks: Blocks
    images: Tensor


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> Case:
    model, size = build(request.param), KINDS[request.param].image_size
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    return Case(request.param, model, list_blocks(request.param, model, described(size)), images)


def read_case(case: Case, images: int = 2) -> tuple[Tensor, list[Tensor]]:
    returned, stream = read(case.model, case.blocks.points, case.images[:images])
    return logits_of_network(returned), stream


def test_cut_points_of_every_kind_are_found(case: Case) -> None:
    joins = [point.join for point in case.blocks.points if point.join]
    found = {
        **case.blocks.table["kind"].value_counts(),
        "joins": len(joins),
        "unchanged": sum(join.identity for join in joins),
    }
    expected = EXPECTED.loc[case.name]
    assert found == expected[expected > 0].to_dict() | {
        name: expected[name] for name in ("joins", "unchanged")
    }
    # They are the same when they were written down.
    assert parse_cut_points(case.blocks.metadata()["cut_points"]) == case.blocks.points


def test_reading_changes_nothing_and_comes_in_the_order_of_the_table(case: Case) -> None:
    with torch.no_grad(), without_fast_path():
        plain = logits_of_network(case.model(case.images))
    logits, stream = read_case(case)
    assert torch.equal(logits, plain)
    assert case.blocks.table["index"].tolist() == [*range(len(stream))]
    shapes = [tuple(latent.shape) for latent in stream]
    sizes = case.blocks.table[["channels", "height", "width"]].itertuples(index=False, name=None)
    assert shapes == [(2, *size) for size in sizes]
    assert all(latent.isfinite().all() for latent in stream)
    _, alone = read_case(case, images=1)
    for one, both in zip(alone, stream, strict=True):
        torch.testing.assert_close(one, both[:1], rtol=1e-3, atol=1e-3)


class Sums(TorchFunctionMode):
    """Counts the additions in the code of a network; one of them may give one of its operands."""

    ADDITIONS = frozenset({"add", "__add__", "__radd__", "add_", "__iadd__"})

    def __init__(self, replaced: int = -1, operand: int = 0) -> None:
        super().__init__()
        self.count, self.replaced, self.operand = 0, replaced, operand

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name not in self.ADDITIONS or not all(isinstance(arg, Tensor) for arg in args):
            return func(*args, **(kwargs or {}))
        self.count += 1
        if self.count - 1 != self.replaced:
            return func(*args, **(kwargs or {}))
        if name in ("add_", "__iadd__"):
            return args[0].copy_(args[self.operand])
        return args[self.operand].clone()


def last_sums(case: Case) -> list[int]:
    """Return which addition comes last before each cut point."""
    sums, last = Sums(), []

    def note(index: int, latent: Tensor) -> None:
        last.append(sums.count - 1)

    with sums, torch.no_grad(), capturing(case.model, case.blocks.points, note):
        case.model(case.images)
    return last


def test_a_silenced_branch_leaves_the_stream_before_it(case: Case) -> None:
    """To the bit, and with the logits of a network whose code gives the shortcut for the sum."""
    points = case.blocks.points
    _, stream = read_case(case)
    joins = {index: point.join for index, point in enumerate(points) if point.join}
    with without_fast_path():
        _, without = lesioned(case.model, list(joins.values()), case.images)
    sums = last_sums(case)
    for (index, join), lesion in zip(joins.items(), without, strict=True):
        with Silencing(case.model, join.names, join):
            logits, silenced = read_case(case)
        assert torch.equal(logits, lesion)
        assert all(torch.equal(*pair) for pair in zip(silenced[:index], stream, strict=False))
        assert not torch.allclose(silenced[index], stream[index]), points[index].name
        if join.identity:
            assert torch.equal(silenced[index], stream[index - 1]), points[index].name
        operands = [0, 1] if join.identity else [shortcut(case.name, points[index].name)]
        others = [logits_without(case, sums[index], operand) for operand in operands]
        assert any(torch.equal(logits, other) for other in others), points[index].name


@torch.no_grad()
def logits_without(case: Case, addition: int, operand: int) -> Tensor:
    with Sums(addition, operand), without_fast_path():
        return logits_of_network(case.model(case.images))


# One model of every module of timm that builds networks: its cut points, by kind, or a refusal.
MODULES = pd.read_csv(FOLDER / "modules.csv", index_col="module")


def test_of_most_modules_cut_points_are_found() -> None:
    assert len(MODULES) == 98
    assert MODULES["model"].is_unique
    assert (MODULES["stem"] == 1).sum() == 91


@pytest.mark.nightly
@pytest.mark.parametrize("module", MODULES.index)
def test_a_network_of_every_module(module: str) -> None:
    expected = MODULES.loc[module]
    with torch.device("meta"):
        model = import_timm().create_model(expected["model"])
    network = described(int(expected["image_size"]))
    if expected["stem"] == 0:
        with pytest.raises(VitscopeError, match=r"as `points`\.$"):
            list_blocks("mine", model, network)
        return
    blocks = list_blocks("mine", model, network)
    kinds = blocks.table["kind"].value_counts()
    joins = [point.join for point in blocks.points if point.join]
    found = {kind: kinds.get(kind, 0) for kind in ("stem", "conv", "msa", "mixing", "mlp", "pool")}
    found |= {"joins": len(joins), "unchanged": sum(join.identity for join in joins)}
    assert found == expected[[*found]].to_dict()
    assert blocks.table["name"].is_unique
    assert blocks.table.columns.tolist() == list(BLOCKS.columns)
    assert (blocks.table[["channels", "height", "width"]] > 0).all(axis=None)
    assert blocks.table["stage"].is_monotonic_increasing
    assert parse_cut_points(write_cut_points(blocks.points)) == blocks.points
    total = sum(parameter.numel() for parameter in model.parameters())
    assert blocks.table["parameters"].sum() + blocks.head.parameters <= total
