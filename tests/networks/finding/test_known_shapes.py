"""Operations on shapes: torch itself, asked without what is remembered, is the oracle."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_leaves, tree_map

from vitscope.networks.finding import known_shapes
from vitscope.networks.finding.known_shapes import KnownShapes
from vitscope.networks.finding.leaves import leaves, map_leaves


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    known: dict[Any, Any] = {}
    monkeypatch.setattr(known_shapes, "_known", known)
    return known


def maps(*shape: int, dtype: torch.dtype | None = None) -> Tensor:
    return torch.empty(shape or (2, 6, 4, 4), device="meta", dtype=dtype)


WEIGHTS = maps(8, 6, 3, 3)
OPERATIONS: dict[str, Callable[[], Any]] = {
    "add": lambda: maps() + maps(6, 1, 1),
    "add of a scalar": lambda: maps() + 1,
    "of whole numbers": lambda: maps(dtype=torch.int64) + 1,
    "of whole and other numbers": lambda: maps(dtype=torch.int64) + 1.0,
    "divided": lambda: maps(dtype=torch.int64) / 2,
    "half": lambda: maps(dtype=torch.bfloat16) * maps(),
    "channels last": lambda: F.gelu(maps().contiguous(memory_format=torch.channels_last)),
    "in memory as its shape": lambda: F.gelu(maps()),
    "transposed": lambda: maps().transpose(1, 3) * 2,
    "of a transposed one": lambda: F.layer_norm(maps().flatten(2).transpose(1, 2), (6,)),
    "batch norm": lambda: F.batch_norm(maps(), maps(6), maps(6)),
    "convolution": lambda: F.conv2d(maps(), WEIGHTS, stride=2, padding=1),
    "layer norm": lambda: F.layer_norm(maps(), (4, 4)),
    "several": lambda: torch.max(maps(), dim=1),
    "a mean": lambda: maps().mean((2, 3), keepdim=True),
    "without its dimensions": lambda: maps().mean((2, 3)),
    "attention": lambda: F.scaled_dot_product_attention(*[maps(2, 3, 5, 4)] * 3),
    "joined": lambda: torch.cat([maps(), maps(2, 1, 4, 4)], dim=1),
    "chosen": lambda: maps()[:, torch.tensor([0, 2], device="meta")],
    "compared": lambda: maps() > 0,
    "converted": lambda: maps().to(torch.float16),
    "resized": lambda: F.interpolate(maps(), scale_factor=2, mode="bilinear"),
}


def described(result: Any) -> list[Any]:
    return [
        (each.shape, each.stride(), each.dtype, each.device.type) for each in tree_leaves(result)
    ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_those_of_torch(name: str, nothing_known: dict[Any, Any]) -> None:
    expected = described(OPERATIONS[name]())
    with KnownShapes():
        assert described(OPERATIONS[name]()) == expected
        known = len(nothing_known)
        assert known
        assert described(OPERATIONS[name]()) == expected
    assert len(nothing_known) == known


def test_all_of_them_after_each_other_are_told_apart() -> None:
    """Two that differ by one argument alone have their own results, in either order."""
    expected = {name: described(operation()) for name, operation in OPERATIONS.items()}
    with KnownShapes():
        for name in [*OPERATIONS, *reversed(OPERATIONS)]:
            assert described(OPERATIONS[name]()) == expected[name], name


def test_a_default_type_is_part_of_what_is_asked() -> None:
    numbers, types = maps(dtype=torch.int64), []
    try:
        with KnownShapes():
            for dtype in (torch.float32, torch.float64):
                torch.set_default_dtype(dtype)
                types.append((numbers / 2).dtype)
    finally:
        torch.set_default_dtype(torch.float32)
    assert types == [torch.float32, torch.float64]


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "view": lambda x: x.view(2, -1),
    "reshape": lambda x: x.reshape(2, -1),
    "_unsafe_view": lambda x: torch.ops.aten._unsafe_view.default(x, [2, 96]),
    "transpose": lambda x: x.transpose(1, 2),
    "split": lambda x: x.split(3, dim=1)[1],
    "detach": lambda x: x.detach(),
    "add_": lambda x: x.add_(1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_shares_memory_still_does(name: str, nothing_known: dict[Any, Any]) -> None:
    with KnownShapes():
        for _ in range(2):
            given = maps()
            found = VIEWS[name](given)
            assert found.untyped_storage()._cdata == given.untyped_storage()._cdata
    assert not nothing_known


def test_values_and_unknown_results_are_left_to_torch(nothing_known: dict[Any, Any]) -> None:
    with KnownShapes():
        for value in (1.0, 2.0):
            assert (torch.full((3,), value) * 2).tolist() == [2 * value] * 3
        assert not torch.equal(torch.rand(8), torch.rand(8))
        with pytest.raises((RuntimeError, NotImplementedError)):
            torch.nonzero(maps())
    assert not nothing_known


def test_it_forgets_what_is_too_much(
    nothing_known: dict[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_shapes, "MOST", 3)
    with KnownShapes():
        for size in range(1, 9):
            assert (maps(size) * 2).shape == (size,)
            assert len(nothing_known) <= 3


NESTED = (maps(1), [1, None, (2.0, [])], {"a": "b", "c": {"d": torch.float32}}), {"e": ()}


def test_leaves_are_those_of_torch() -> None:
    for values in (NESTED, maps(1), None, [], torch.max(maps(), dim=1)):
        pairs = zip(leaves(values), tree_leaves(values), strict=True)
        assert all(one is other for one, other in pairs)


def test_mapped_leaves_are_those_of_torch() -> None:
    def named(leaf: Any) -> str:
        return type(leaf).__name__

    for values in (NESTED, maps(1), None, []):
        assert map_leaves(named, values) == tree_map(named, values)
