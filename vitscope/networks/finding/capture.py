"""Read the feature maps at the cut points of a network as it runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.networks import without_fast_path
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.cut_points import CutPoint, OperationId
from vitscope.networks.finding.operations import Args, Kwargs

Sink = Callable[[int, Tensor], None]


def capturing(
    model: nn.Module, cut_points: Sequence[CutPoint], sink: Sink
) -> AbstractContextManager[None]:
    """Call `sink(index, feature map)` at every cut point of each forward pass in the block.

    The feature map is (N, C, H, W) and usually shares memory with the model: do not change it.
    """

    def sink_feature_map(index: int, tensor: Tensor) -> None:
        sink(index, cut_points[index].layout.to_nchw(tensor))

    return capturing_tensors(model, cut_points, sink_feature_map)


@contextmanager
def capturing_tensors(
    model: nn.Module, cut_points: Sequence[CutPoint], sink: Sink
) -> Iterator[None]:
    """Call `sink(index, tensor)` as `capturing` does, but with the model's own tensor.

    A tensor that an operation returns gets its gradient history only after the operation ends, so
    anything that the sink computes from it has no gradient.
    """
    seen: list[int] = []

    def capture_in_order(index: int, tensor: Tensor) -> None:
        if index != len(seen):
            raise ops.another_path(
                f"came to the cut point {quoted(cut_points[index].name)} after {len(seen)} others, "
                f"where it is number {index}"
            )
        seen.append(index)
        sink(index, tensor)

    def forget_seen_points(*_: Any) -> None:
        seen.clear()

    def refuse_unseen_points(*_: Any) -> None:
        for point in cut_points[len(seen) :]:
            raise ops.another_path(f"never came to the cut point {quoted(point.name)}")

    by_operation = {each.operation: n for n, each in enumerate(cut_points) if each.operation}
    with ExitStack() as stack:
        stack.enter_context(without_fast_path())
        for index, point in enumerate(cut_points):
            if not point.operation:
                stack.callback(_attach_hook(model, point, index, capture_in_order).remove)
        stack.callback(model.register_forward_pre_hook(forget_seen_points).remove)
        if by_operation:
            stack.enter_context(_Capturer(model, by_operation, capture_in_order))
        stack.callback(model.register_forward_hook(refuse_unseen_points).remove)
        yield


def _attach_hook(model: nn.Module, point: CutPoint, index: int, read: Sink) -> Any:
    # Return nothing from the hook: a returned value would replace the stream.
    def capture_tensor(module: nn.Module, args: Any, last: Any) -> None:
        tensor = ops.first_tensor((args, last) if point.at == "input" else last)
        if tensor is None:
            raise VitscopeError(
                f"The {point.at} of the module {quoted(point.module)} is no tensor."
            )
        read(index, tensor)

    module = model.get_submodule(point.module or "")
    if point.at == "input":
        return module.register_forward_pre_hook(capture_tensor, with_kwargs=True)
    return module.register_forward_hook(capture_tensor)


class _Capturer(ops.ModuleMode):  # type: ignore[no-untyped-call]
    def __init__(self, model: nn.Module, wanted: Mapping[OperationId, int], read: Sink) -> None:
        super().__init__(model)
        self._names = {operation.alike[0] for operation in wanted}
        self._wanted, self._read = wanted, read

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        result = function(*args, **kwargs)
        name = ops.operation_name(function)
        if name in self._names and not ops.is_bias(name, args):
            tensor = ops.first_tensor(result)
            if tensor is not None:
                index = self._wanted.get(self.count(name, tensor))
                if index is not None:
                    self._read(index, tensor)
        return result
