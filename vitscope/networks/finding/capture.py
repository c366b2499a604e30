"""Read a model's residual stream while the model runs its own forward pass, or silence a branch."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.plain_attention import without_fast_path
from vitscope.networks.finding.cut_points import Addition, CutPoint, Join, OperationId
from vitscope.networks.finding.modes import Args, Kwargs, ModuleMode, first_tensor, is_bias
from vitscope.networks.finding.operations import STACKS, plain_name

Sink = Callable[[int, Tensor], None]


@contextmanager
def capturing(model: nn.Module, cut_points: Sequence[CutPoint], sink: Sink) -> Iterator[None]:
    """Call `sink(index, feature map)` at every cut point of each forward pass in the block.

    The feature map is (N, C, H, W) and mostly shares memory with the model: the sink only reads it.
    """

    def read(index: int, tensor: Tensor) -> None:
        sink(index, cut_points[index].layout.to_nchw(tensor))

    with reading(model, cut_points, read):
        yield


@contextmanager
def reading(model: nn.Module, cut_points: Sequence[CutPoint], sink: Sink) -> Iterator[None]:
    """Call `sink(index, tensor)` as `capturing` does, with the very tensor that the model has.

    One that an operation returns knows what it was computed from when that operation has ended, and
    not before: what is computed of it in the sink has no gradient.
    """
    seen: list[int] = []

    def read(index: int, tensor: Tensor) -> None:
        _check_order(cut_points, seen, index)
        seen.append(index)
        sink(index, tensor)

    def begin(*_: Any) -> None:
        seen.clear()

    def end(*_: Any) -> None:
        _check_complete(cut_points, seen)

    by_operation = {
        point.operation: index
        for index, point in enumerate(cut_points)
        if point.operation is not None
    }
    with ExitStack() as stack:
        stack.enter_context(without_fast_path())
        for index, point in enumerate(cut_points):
            if point.operation is None:
                stack.callback(_attach(model, point, index, read).remove)
        stack.callback(model.register_forward_pre_hook(begin).remove)
        if by_operation:
            stack.enter_context(_Reader(model, by_operation, read))
        stack.callback(model.register_forward_hook(end).remove)
        yield


def _attach(
    model: nn.Module, point: CutPoint, index: int, read: Callable[[int, Tensor], None]
) -> Any:
    # What a hook returns would replace the stream, so neither of these returns anything.
    def read_input(module: nn.Module, args: Any, kwargs: Any) -> None:
        read(index, _tensor(point, (args, kwargs)))

    def read_output(module: nn.Module, args: Any, output: Any) -> None:
        read(index, _tensor(point, output))

    module = model.get_submodule(point.module or "")
    if point.at == "input":
        return module.register_forward_pre_hook(read_input, with_kwargs=True)
    return module.register_forward_hook(read_output)


def _tensor(point: CutPoint, values: Any) -> Tensor:
    tensor = first_tensor(values)
    if tensor is None:
        raise VitscopeError(f"The {point.at} of the module {quoted(point.module)} is no tensor.")
    return tensor


def _check_order(cut_points: Sequence[CutPoint], seen: Sequence[int], index: int) -> None:
    if index != len(seen):
        raise VitscopeError(
            f"The network took another path than the one that was recorded: it came to the cut "
            f"point {quoted(cut_points[index].name)} after {len(seen)} others, where it is number "
            f"{index}. Networks that choose their path by the images cannot be read."
        )


def _check_complete(cut_points: Sequence[CutPoint], seen: Sequence[int]) -> None:
    if len(seen) < len(cut_points):
        raise VitscopeError(
            f"The network took another path than the one that was recorded: it never came to the "
            f"cut point {quoted(cut_points[len(seen)].name)}. Networks that choose their path by "
            f"the images cannot be read."
        )


class _Reader(ModuleMode):  # type: ignore[no-untyped-call]
    """Reads what operations return."""

    def __init__(
        self,
        model: nn.Module,
        wanted: Mapping[OperationId, int],
        read: Callable[[int, Tensor], None],
    ) -> None:
        super().__init__(model)
        self._names = {operation.alike[0] for operation in wanted}
        self._wanted = wanted
        self._read = read

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, and read what it returns if that is wanted."""
        result = function(*args, **kwargs)
        name = plain_name(function)
        if name in self._names and not is_bias(name, args):
            tensor = first_tensor(result)
            if tensor is not None:
                index = self._wanted.get(self.count(name, tensor))
                if index is not None:
                    self._read(index, tensor)
        return result


class _AtJoins(ModuleMode):  # type: ignore[no-untyped-call]
    """Does something else at some additions of a pass."""

    def __init__(self, model: nn.Module, names: Set[str], joins: Iterable[Join]) -> None:
        super().__init__(model)
        self.names = names
        self._additions = {each.operation: each for join in joins for each in join.additions}
        self._missing = {*self._additions}

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation and, if it is one of the additions, do something else."""
        name = plain_name(function)
        if name not in self.names or is_bias(name, args):
            return function(*args, **kwargs)
        in_place = function.overloadpacket.__name__ != name
        # What is added in place would be lost.
        result = args[0] if in_place else function(*args, **kwargs)
        tensor = first_tensor(result)
        addition = None
        if tensor is not None:
            operation = self.count(name, tensor)
            addition = self._additions.get(operation)
            self._missing.discard(operation)
        if addition is not None:
            return self.add(addition, function, args, kwargs)
        return function(*args, **kwargs) if in_place else result

    @abstractmethod
    def add(self, addition: Addition, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run one of the additions, and return what it returns."""

    def check(self) -> None:
        """Refuse a pass in which one of the additions was never met."""
        for operation in self._missing:
            raise VitscopeError(
                f"The network took another path than the one that was recorded: it never came to "
                f"an addition in {quoted(operation.module)}. Networks that choose their path by "
                f"the images cannot be measured at their branches."
            )


class Silencing(_AtJoins):  # type: ignore[no-untyped-call]
    """Lets joins return the stream that they were to add a branch to."""

    def __init__(self, model: nn.Module, names: Set[str], *joins: Join) -> None:
        super().__init__(model, names, joins)

    def add(self, addition: Addition, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Add zeros in place of the branch."""
        leaves, spec = tree_flatten((args, dict(kwargs)))
        for place in addition.branch:
            written = function.overloadpacket.__name__.endswith("_") and place == 0
            leaves[place] = leaves[place].zero_() if written else torch.zeros_like(leaves[place])
        args, kwargs = tree_unflatten(leaves, spec)
        return function(*args, **kwargs)


class JoinReader(_AtJoins):  # type: ignore[no-untyped-call]
    """Reads what joins add, before anything is written to it: the stream and its branch."""

    def __init__(
        self,
        model: nn.Module,
        joins: Mapping[Join, int],
        sink: Callable[[int, Tensor, Tensor], None],
    ) -> None:
        super().__init__(model, {name for join in joins for name in join.names}, joins)
        self._joins = {each: (join, at) for join, at in joins.items() for each in join.additions}
        self._sink = sink
        self._sides: dict[Join, tuple[Tensor, Tensor]] = {}

    def add(self, addition: Addition, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Read both sides of an addition, and run it."""
        join, index = self._joins[addition]
        stream, branch = _sides(addition, function, args, kwargs)
        if join in self._sides:
            stream, before = self._sides.pop(join)
            branch = before + branch
        if addition == join.additions[-1]:
            self._sink(index, stream, branch)
        else:
            self._sides[join] = stream.clone(), branch.clone()
        return function(*args, **kwargs)


def _sides(addition: Addition, function: Any, args: Args, kwargs: Kwargs) -> tuple[Tensor, Tensor]:
    """Return what an addition adds up: the stream, and all others together."""
    leaves, spec = tree_flatten((args, dict(kwargs)))
    name = plain_name(function)
    if name == "cat":
        # Along a dimension of one, over which it is summed up again.
        along = [*args[1:2], kwargs.get("dim", 0)][0]
        leaves = [leaf.squeeze(along) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    if name in ("add", *STACKS) and kwargs.get("alpha", 1) == 1:
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
