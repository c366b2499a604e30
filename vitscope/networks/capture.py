"""Read a model's residual stream while the model runs its own forward pass."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from vitscope.networks.cut_points import CutPoint

Sink = Callable[[int, Tensor], None]


@contextmanager
def capturing(model: nn.Module, cut_points: Sequence[CutPoint], sink: Sink) -> Iterator[None]:
    """Call `sink(index, feature map)` at every cut point of each forward pass in the block.

    The feature map is (N, C, H, W) and shares memory with the model: the sink only reads it.
    """
    handles: list[RemovableHandle] = []
    try:
        for index, cut_point in enumerate(cut_points):
            handles.append(_attach(model, cut_point, index, sink))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _attach(model: nn.Module, cut_point: CutPoint, index: int, sink: Sink) -> RemovableHandle:
    # What a hook returns would replace the stream, so neither of these returns anything.
    def read_input(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        sink(index, cut_point.layout.to_nchw(inputs[0]))

    def read_output(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        sink(index, cut_point.layout.to_nchw(output))

    module = model.get_submodule(cut_point.module)
    if cut_point.at == "input":
        return module.register_forward_pre_hook(read_input)
    return module.register_forward_hook(read_output)
