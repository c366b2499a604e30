"""Read a model's residual stream while the model runs its own forward pass, or silence a branch."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.plain_attention import without_fast_path
from vitscope.networks.finding.cut_points import CutPoint, Join, OperationId
from vitscope.networks.finding.modes import Args, Kwargs, ModuleMode, first_tensor, is_bias
from vitscope.networks.finding.operations import plain_name

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


class JoinReader(ModuleMode):  # type: ignore[no-untyped-call]
    """Reads what joins add, before anything is written to it: the stream and its branch."""

    def __init__(
        self,
        model: nn.Module,
        joins: Mapping[Join, int],
        sink: Callable[[int, Tensor, Tensor], None],
    ) -> None:
        super().__init__(model)
        self._joins = {join.operation: (join, index) for join, index in joins.items()}
        self._names = {operation.alike[0] for operation in self._joins}
        self._sink = sink
        self._missing = {*self._joins}

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation and, if it is a join, read its operands."""
        name = plain_name(function)
        if name not in self._names or is_bias(name, args):
            return function(*args, **kwargs)
        in_place = function.overloadpacket.__name__ != name
        result = args[0] if in_place else function(*args, **kwargs)
        operation = self.count(name, result)
        if operation in self._joins:
            join, index = self._joins[operation]
            self._missing.discard(operation)
            self._sink(index, *_operands(join, result.shape, args, kwargs))
        return function(*args, **kwargs) if in_place else result

    def check(self) -> None:
        """Refuse a pass in which a join was never met."""
        for operation in self._missing:
            raise missed(operation)


def _operands(
    join: Join, shape: tuple[int, ...], args: Args, kwargs: Kwargs
) -> tuple[Tensor, Tensor]:
    """Return the stream and the branch of a join, which may be a product (`addcmul`)."""
    terms = [args[0], args[1] if len(args) == 2 else kwargs.get("value", 1) * args[1] * args[2]]
    stream = terms.pop(min(join.stream, 1))
    return stream.expand(shape), terms[0].expand(shape)


def missed(operation: OperationId) -> VitscopeError:
    """Return the error of a pass in which an addition was never met."""
    return VitscopeError(
        f"The network took another path than the one that was recorded: it never came to an "
        f"addition in {quoted(operation.module)}. Networks that choose their path by the images "
        f"cannot be measured at their branches."
    )


class Silencing(ModuleMode):  # type: ignore[no-untyped-call]
    """Lets one join return the stream that it was to add a branch to."""

    def __init__(self, model: nn.Module, names: Set[str], join: Join | None = None) -> None:
        super().__init__(model)
        self.names = names
        self._join = join
        self._done = False

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, unless it is the join."""
        name = plain_name(function)
        if name not in self.names or is_bias(name, args):
            return function(*args, **kwargs)
        in_place = function.overloadpacket.__name__ != name
        # What is added in place would be lost.
        result = args[0] if in_place else function(*args, **kwargs)
        operation = self.count(name, result)
        if self._join is None or operation != self._join.operation:
            return function(*args, **kwargs) if in_place else result
        self._done = True
        stream = args[self._join.stream]
        if not in_place:
            return stream.clone()
        return args[0] if self._join.stream == 0 else args[0].copy_(stream)

    def check(self) -> None:
        """Refuse a pass in which the join was never met."""
        if self._join is not None and not self._done:
            raise missed(self._join.operation)
