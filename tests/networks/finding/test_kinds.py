"""What holds for networks of many kinds: reading changes nothing, silencing leaves the stream."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tests.helpers.kinds import KINDS, build
from tests.helpers.networks import described
from tests.helpers.written import FOLDER
from vitscope.measures.lesion.compute import lesioned
from vitscope.networks.building.networks import logits_of, without_fast_path
from vitscope.networks.finding.blocks import Blocks, list_blocks
from vitscope.networks.finding.capture import Silencing, capturing
from vitscope.networks.finding.cut_points import read_points

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


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """So small maps are not worth a second."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> Case:
    model, size = build(request.param), KINDS[request.param].image_size
    images = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    return Case(request.param, model, list_blocks(request.param, model, described(size)), images)


@torch.no_grad()
def read(case: Case, images: int = 2) -> tuple[Tensor, list[Tensor], list[int]]:
    """Return the logits, the stream at every cut point, and the cut points in the order of both."""
    stream: list[Tensor] = []
    order: list[int] = []

    def note(index: int, latent: Tensor) -> None:
        order.append(index)
        stream.append(latent.clone())

    with capturing(case.model, case.blocks.points, note):
        return logits_of(case.model(case.images[:images])), stream, order


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


def test_reading_changes_nothing_and_comes_in_the_order_of_the_table(case: Case) -> None:
    with torch.no_grad(), without_fast_path():
        plain = logits_of(case.model(case.images))
    logits, stream, order = read(case)
    assert torch.equal(logits, plain)
    assert order == case.blocks.table["index"].tolist()
    shapes = [tuple(latent.shape) for latent in stream]
    sizes = case.blocks.table[["channels", "height", "width"]].itertuples(index=False, name=None)
    assert shapes == [(2, *size) for size in sizes]
    assert all(latent.isfinite().all() for latent in stream)
    _, alone, order = read(case, images=1)
    assert order == case.blocks.table["index"].tolist()
    for one, both in zip(alone, stream, strict=True):
        torch.testing.assert_close(one, both[:1], rtol=1e-3, atol=1e-3)


def test_cut_points_are_the_same_when_they_were_written_down(case: Case) -> None:
    assert read_points(case.blocks.metadata()["cut_points"]) == case.blocks.points


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
    _, stream, _ = read(case)
    joins = {index: point.join for index, point in enumerate(points) if point.join}
    with without_fast_path():
        _, without = lesioned(case.model, list(joins.values()), case.images)
    sums = last_sums(case)
    for (index, join), lesion in zip(joins.items(), without, strict=True):
        with Silencing(case.model, join.names, join):
            logits, silenced, _ = read(case)
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
        return logits_of(case.model(case.images))
