"""Change, silence and read what branches add to a network's stream, and prove that it works."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes, _get_current_dispatch_mode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.networks import tensors_of, without_fast_path
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import Addition, CutPoint, Join
from vitscope.networks.finding.operations import Args, Kwargs


class _CapturedJoins(ops.ModuleMode):  # type: ignore[no-untyped-call]
    def __init__(self, model: nn.Module, names: Set[str], *joins: Join) -> None:
        super().__init__(model)
        self.names = names
        self._additions = {each.operation: each for join in joins for each in join.additions}
        self._missing = {*self._additions}

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        name = ops.operation_name(function)
        if name not in self.names or ops.is_bias(name, args):
            return function(*args, **kwargs)
        in_place = function.overloadpacket.__name__ != name
        # Do not run an in-place addition yet: it would overwrite the stream. Modes beneath this one
        # see an operation once, with the operands that it has in the end.
        apart = in_place or _get_current_dispatch_mode() is not None
        with _disable_current_modes():
            result = args[0] if in_place else function(*args, **kwargs)
        tensor = ops.first_tensor(result)
        addition = None
        if tensor is not None:
            operation = self.count(name, tensor)
            addition = self._additions.get(operation)
            self._missing.discard(operation)
        if addition is not None:
            return self.run_addition(addition, function, args, kwargs)
        return function(*args, **kwargs) if apart else result

    @abstractmethod
    def run_addition(self, addition: Addition, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an addition of a captured join, or what takes its place, and return the result."""

    def check(self) -> None:
        for operation in self._missing:
            raise ops.another_path(
                f"never came to an addition in {quoted(operation.module)}",
                "measured at their branches",
            )


class BranchChanger(_CapturedJoins):  # type: ignore[no-untyped-call]
    """Makes joins add what `change` returns of each operand of their branch."""

    def __init__(
        self, model: nn.Module, names: Set[str], *joins: Join, change: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__(model, names, *joins)
        self._change = change

    def run_addition(self, addition: Addition, function: Any, args: Args, kwargs: Kwargs) -> Any:
        leaves, spec = tree_flatten((args, dict(kwargs)))
        for place in addition.branch:
            written = function.overloadpacket.__name__.endswith("_") and place == 0
            changed = self._change(leaves[place])
            leaves[place] = leaves[place].copy_(changed) if written else changed
        args, kwargs = tree_unflatten(leaves, spec)
        return function(*args, **kwargs)


class Silencing(BranchChanger):  # type: ignore[no-untyped-call]
    """Makes joins return the stream without the branch that they would add."""

    def __init__(self, model: nn.Module, names: Set[str], *joins: Join) -> None:
        super().__init__(model, names, *joins, change=torch.zeros_like)


class JoinReader(_CapturedJoins):  # type: ignore[no-untyped-call]
    """Reads the stream and the branch that a join adds, before anything overwrites them."""

    def __init__(
        self,
        model: nn.Module,
        joins: Mapping[Join, int],
        sink: Callable[[int, Tensor, Tensor], None],
    ) -> None:
        super().__init__(model, {name for join in joins for name in join.names}, *joins)
        self._joins = {each: (join, at) for join, at in joins.items() for each in join.additions}
        self._sink = sink
        self._sides: dict[Join, tuple[Tensor, Tensor]] = {}

    def run_addition(self, addition: Addition, function: Any, args: Args, kwargs: Kwargs) -> Any:
        join, index = self._joins[addition]
        stream, branch = _capture_sides(addition, function, args, kwargs)
        if join in self._sides:
            stream, before = self._sides.pop(join)
            branch = before + branch
        if addition == join.additions[-1]:
            self._sink(index, stream, branch)
        else:
            self._sides[join] = stream.clone(), branch.clone()
        return function(*args, **kwargs)


def _capture_sides(
    addition: Addition, function: Any, args: Args, kwargs: Kwargs
) -> tuple[Tensor, Tensor]:
    """Return the two sides of an addition: the stream, and the sum of its other operands."""
    leaves, spec = tree_flatten((args, dict(kwargs)))
    name = ops.operation_name(function)
    if name == "cat":
        # Drop the dimension of size one over which the next operation sums.
        along = [*args[1:2], kwargs.get("dim", 0)][0]
        leaves = [leaf.squeeze(along) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    if name in ("add", *ops.STACKS) and kwargs.get("alpha", 1) == 1:
        shapes = [leaves[place].shape for place in (*addition.stream, *addition.branch)]
        shape = torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
        stream, branch = (
            [leaves[place].expand(shape) for place in side]
            for side in (addition.stream, addition.branch)
        )
        return sum(stream[1:], stream[0]), sum(branch[1:], branch[0])
    found = []
    for other in (addition.branch, addition.stream):
        kept = [leaf.clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        for place in other:
            kept[place].zero_()
        kept_args, kept_kwargs = tree_unflatten(kept, spec)
        found += tree_leaves(function(*kept_args, **kept_kwargs))[:1]
    return found[0], found[1]


# The number of images on which `prove_capture` checks a network before branches are measured.
PROVED = 2


@dataclass(frozen=True)
class Proofs:
    silenced: int
    restored: int
    wrong: list[str]


@torch.inference_mode()
def prove_capture(model: nn.Module, points: Sequence[CutPoint], images: Tensor) -> Proofs:
    """Prove on `images` that a network's stream is read, and its branches silenced, correctly.

    While it is read, the network must return exactly its usual logits and pass all cut points in
    order. Without branches, the stream after each branch must exactly equal the stream before it,
    if the shortcut beside the branch changes nothing.
    """
    wrong = []
    joins = {i: point.join for i, point in enumerate(points) if point.join is not None}
    names = frozenset[str]().union(*(join.names for join in joins.values()))
    with without_fast_path():
        # Run in a dispatch mode, like the pass without branches: torch may round differently there.
        with Silencing(model, set()):
            plain = tensors_of(model(images))
            returned, _ = _capture_stream(model, points, images)
        if not all(map(torch.equal, plain, returned)):
            wrong.append("the logits change when the network is read")
        with Silencing(model, names, *joins.values()) as silencing:
            _, stream = _capture_stream(model, points, images)
        silencing.check()
    wrong += [
        f"without the branch of {quoted(points[index].name)} the stream is another than before it"
        for index, join in joins.items()
        if join.identity and not torch.equal(stream[index], stream[index - 1])
    ]
    restored = sum(join.identity for join in joins.values())
    return Proofs(len(joins), restored, wrong)


def refuse_unproven_capture(
    where: str, model: nn.Module, points: Sequence[CutPoint], images: Tensor
) -> None:
    wrong = prove_capture(model, points, images).wrong
    if wrong:
        raise VitscopeError(
            f"{where}: {wrong[0]}: branches of the network cannot be measured; take it out of this "
            f"figure."
        )


def _capture_stream(
    model: nn.Module, points: Sequence[CutPoint], images: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    stream: list[Tensor] = []
    with capturing(model, points, lambda _, latent: stream.append(latent.clone())):
        return tensors_of(model(images)), stream
