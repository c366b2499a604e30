"""The device that networks run on, and work on a GPU that is recorded once as a CUDA graph."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from vitscope.errors import VitscopeError
from vitscope.progress import Say, say_on_stderr


def pick_device(wanted: str) -> torch.device:
    """Return the device to run on; a missing CUDA device that was asked for is an error.

    A CUDA device is told to compute in full float32, and with algorithms that give the same bytes
    each time: TF32, which convolutions take by default, keeps three decimal digits.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise VitscopeError(
            "device: the study asks for cuda and this machine has none; set device to auto or cpu."
        )
    if wanted == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    cudnn: Any = torch.backends.cudnn
    matmul: Any = torch.backends.cuda.matmul
    for operation in (matmul, cudnn.conv, cudnn.rnn):
        operation.fp32_precision = "ieee"
    cudnn.benchmark, cudnn.deterministic = False, True
    return torch.device("cuda")


RECORDED_ON = ("cuda",)
# A library that tunes itself does so in the first calls, which a recording must not hold.
WARM_UP = 3

Tensors = tuple[Tensor, ...]
Work = Callable[..., Tensors]


def is_recorded(device: torch.device) -> bool:
    """Tell whether work on a device is recorded."""
    return device.type in RECORDED_ON


@contextmanager
def own_stream(device: torch.device) -> Iterator[None]:
    """Run the block on a stream of its own, as all must that is recorded, and what it goes back to.

    The default stream cannot be recorded, and a backward pass runs where its forward pass did. No
    other work shares the workspace of this stream, so that two recordings may run at once.
    """
    streams = torch.get_device_module(device)
    here, own = streams.current_stream(), streams.Stream()
    own.wait_stream(here)
    try:
        with streams.stream(own):
            yield
    finally:
        here.wait_stream(own)


class _Recorded(NamedTuple):
    """Work as it was recorded: it reads `inputs` and writes `outputs`, there and nowhere else."""

    replay: Callable[[], None]
    inputs: Tensors
    outputs: Tensors


class Recording:
    """A piece of work on a GPU: recorded at its fourth call, once for each shape of its inputs.

    The work must do the same each time, with tensors that stay where they are. It is given with
    each call and not kept, since an owner that is kept by its own part outlives its use. Work that
    cannot be recorded, such as a network that waits for the GPU, is done as it is.
    """

    def __init__(self, say: Say = say_on_stderr) -> None:
        self._say = say
        self._calls: Counter[object] = Counter()
        self._recorded: dict[object, _Recorded] = {}
        self._refused = False

    def run(self, work: Work, *inputs: Tensor) -> Tensors:
        """Do the work, in a block of `own_stream`; all that it takes and returns are tensors."""
        if not is_recorded(inputs[0].device) or self._refused:
            return work(*inputs)
        shapes = tuple(each.shape for each in inputs)
        self._calls[shapes] += 1
        if self._calls[shapes] <= WARM_UP:
            return work(*inputs)
        if shapes not in self._recorded:
            kept = tuple(each.clone() for each in inputs)
            try:
                replay, outputs = record(lambda: work(*kept))
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                self._refused = True
                first = str(error).partition("\n")[0]
                self._say(
                    f"runs one operation after the other, since no CUDA graph holds it: {first}"
                )
                return work(*inputs)
            self._recorded[shapes] = _Recorded(replay, kept, outputs)
        return _replayed(self._recorded[shapes], inputs)


def _replayed(recorded: _Recorded, inputs: Tensors) -> Tensors:
    """Return copies of what recorded work makes of inputs: the next replay writes over it."""
    for kept, given in zip(recorded.inputs, inputs, strict=True):
        kept.copy_(given)
    recorded.replay()
    return tuple(each.clone() for each in recorded.outputs)


def record(work: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
    """Record work on the current stream; return what replays it, and where its results are."""
    graph = torch.cuda.CUDAGraph()
    here = torch.cuda.current_stream()
    # Other threads, such as those that bring batches, may allocate meanwhile.
    with torch.cuda.graph(graph, stream=here, capture_error_mode="thread_local"):
        outputs = work()
    return graph.replay, outputs
