"""Read a model's residual stream while the model runs its own forward pass, or silence a branch."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Self

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.plain_attention import without_fast_path
from vitscope.networks.finding.cut_points import Alike, CutPoint, Join, Recorded
from vitscope.networks.finding.dataflow import alike, first_tensor, is_bias
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
            reader = _Reader(model, by_operation, read)
            start = partial(begin_pass, reader.begin)
            stack.callback(model.register_forward_pre_hook(start, with_kwargs=True).remove)
            stack.enter_context(reader)
        stack.callback(model.register_forward_hook(end).remove)
        yield


def begin_pass(begin: Callable[[int], None], module: nn.Module, args: Any, kwargs: Any) -> None:
    """Tell, as a hook before a network runs, of how many images a pass begins."""
    images = first_tensor((args, kwargs))
    begin(1 if images is None else len(images))


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


class OperationMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts those operations of a module that are alike, by the names that it is to look at."""

    def __init__(self, model: nn.Module, names: Set[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.model = model
        self.names = names
        self.counts: Counter[tuple[str, Alike]] = Counter()
        self._images = 1
        self._running = [""]
        self._hooks = ExitStack()

    def __enter__(self) -> Self:
        """Follow which module runs, and look at every operation."""
        for name, module in self.model.named_modules():
            enter = partial(self._begun, name)
            self._hooks.callback(module.register_forward_pre_hook(enter).remove)
            self._hooks.callback(module.register_forward_hook(self._ended).remove)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        """Look no more."""
        self._hooks.close()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _begun(self, name: str, *_: Any) -> None:
        self._running.append(name)

    def _ended(self, *_: Any) -> None:
        self._running.pop()

    def begin(self, images: int) -> None:
        """Begin a pass of so many images."""
        self._images = images
        self._running = [""]
        self.counts.clear()

    def counted(self, name: str, tensor: Tensor) -> Recorded:
        """Count an operation, and return which one it is."""
        key = alike(name, tensor, self._images)
        module = self._running[-1]
        self.counts[module, key] += 1
        return Recorded(module, key, self.counts[module, key] - 1)


class _Reader(OperationMode):  # type: ignore[no-untyped-call]
    """Reads what operations return."""

    def __init__(
        self, model: nn.Module, wanted: Mapping[Recorded, int], read: Callable[[int, Tensor], None]
    ) -> None:
        super().__init__(model, {operation.alike[0] for operation in wanted})
        self._wanted = wanted
        self._read = read

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation, and read what it returns if that is wanted."""
        result = func(*args, **(kwargs or {}))
        if plain_name(func) in self.names and not is_bias(plain_name(func), args):
            tensor = first_tensor(result)
            if tensor is not None:
                index = self._wanted.get(self.counted(plain_name(func), tensor))
                if index is not None:
                    self._read(index, tensor)
        return result


class Silencing(OperationMode):  # type: ignore[no-untyped-call]
    """Lets one join return the stream that it was to add a branch to."""

    def __init__(self, model: nn.Module, names: Set[str], join: Join | None = None) -> None:
        super().__init__(model, names)
        self._join = join
        self._done = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operation, unless it is the join."""
        name = plain_name(func)
        if name not in self.names or is_bias(name, args):
            return func(*args, **(kwargs or {}))
        in_place = func.overloadpacket.__name__ != name
        # What is added in place would be lost.
        result = args[0] if in_place else func(*args, **(kwargs or {}))
        operation = self.counted(name, result)
        if self._join is None or operation != self._join.operation:
            return func(*args, **(kwargs or {})) if in_place else result
        self._done = True
        stream = args[self._join.stream]
        if not in_place:
            return stream.clone()
        return args[0] if self._join.stream == 0 else args[0].copy_(stream)

    def check(self) -> None:
        """Refuse a pass in which the join was never met."""
        if self._join is not None and not self._done:
            raise VitscopeError(
                f"The network took another path than the one that was recorded: it never came to "
                f"an addition in {quoted(self._join.operation.module)}. Networks that choose their "
                f"path by the images cannot be measured without one of their branches."
            )
