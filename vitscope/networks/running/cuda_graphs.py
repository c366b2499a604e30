"""Record work on a GPU as CUDA graphs, and replay it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from vitscope.progress import Say, say_on_stderr

RECORDED_ON = ("cuda",)
# Number of calls before a recording: in their first calls, libraries tune themselves, which cannot
# be recorded.
WARM_UP = 3

Tensors = tuple[Tensor, ...]
Work = Callable[..., Tensors]


def is_recorded(device: torch.device) -> bool:
    return device.type in RECORDED_ON


@contextmanager
def own_device_stream(device: torch.device) -> Iterator[None]:
    """Run the block on a separate stream, as recorded work and its backward pass require."""
    # The default stream cannot be recorded; no other work shares the workspace of a new stream.
    streams = torch.get_device_module(device)
    here, own = streams.current_stream(), streams.Stream()
    own.wait_stream(here)
    try:
        with streams.stream(own):
            yield
    finally:
        here.wait_stream(own)


class GraphRecording:
    """Records work on a GPU once for each shape of its inputs, and replays it on fixed buffers."""

    def __init__(self, say: Say = say_on_stderr) -> None:
        self._say = say
        self._calls: Counter[object] = Counter()
        # By the shapes of inputs: the function that replays the work, its input buffers, and its
        # output buffers.
        self._recorded: dict[object, tuple[Callable[[], None], Tensors, Tensors]] = {}
        self._refused = False

    def run(self, work: Work, *inputs: Tensor) -> Tensors:
        """Do work that takes and returns only tensors, in a block of `own_device_stream`."""
        # Do not store `work`: it may refer to the owner of this object, which would stay alive.
        if not is_recorded(inputs[0].device) or self._refused:
            return work(*inputs)
        shapes = tuple(each.shape for each in inputs)
        self._calls[shapes] += 1
        if self._calls[shapes] <= WARM_UP:
            return work(*inputs)
        if shapes not in self._recorded:
            kept = tuple(each.clone() for each in inputs)
            try:
                replay, outputs = record_graph(lambda: work(*kept))
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self._refused = True
                first = str(error).partition("\n")[0]
                self._say(
                    f"runs one operation after the other, since no CUDA graph holds it: {first}"
                )
                return work(*inputs)
            self._recorded[shapes] = replay, kept, outputs
        replay, places, results = self._recorded[shapes]
        for place, given in zip(places, inputs, strict=True):
            place.copy_(given)
        replay()
        # Copy the results, because the next replay overwrites them.
        return tuple(each.clone() for each in results)


def record_graph(work: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
    """Record work on the current stream; return a function that replays it, and its outputs."""
    graph = torch.cuda.CUDAGraph()
    here = torch.cuda.current_stream()
    generator: Any = torch.cuda.default_generators[here.device.index]
    before = generator.clone_state()
    try:
        # Let other threads, such as those that load batches, allocate memory during the recording.
        with torch.cuda.graph(graph, stream=here, capture_error_mode="thread_local"):
            outputs = work()
    except RuntimeError:
        # Restore the generator, which torch leaves in its recording state if a recording fails.
        generator.graphsafe_set_state(before)
        raise
    return graph.replay, outputs
