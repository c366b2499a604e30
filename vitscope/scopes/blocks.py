"""The blocks of a network, each of which can run alone."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError
from vitscope.networks.building.networks import ends_of, own_type, unwrap_compiled
from vitscope.networks.finding.blocks import list_blocks
from vitscope.networks.finding.capture import capturing_tensors
from vitscope.networks.finding.cut_finder import Points
from vitscope.networks.finding.cut_points import Layout, Side
from vitscope.networks.finding.replay import Replay
from vitscope.scopes.lending import choose_device_for_lending, device_of, lend


@dataclass(frozen=True)
class Block:
    """A part of a network, from one cut point to the next; the last, `head`, gives the output.

    Call the first block with images, and every other block with the output of the previous one.
    `depth` is the depth of the block's cut point, from 0 to 1. `why_not` is the reason why the
    block cannot run alone, or None.
    """

    name: str
    kind: str
    stage: int
    depth: float
    why_not: str | None
    _part: int
    _layout: Layout | None
    _replay: Replay

    def __call__(self, x: Tensor) -> Tensor:
        """Run the block alone on the stream before the block, and return the stream after it."""
        if self.why_not:
            raise VitscopeError(f"{self.name}: {self.why_not}")
        try:
            return self._replay.run(self._part, x)
        except VitscopeError as error:
            raise VitscopeError(f"{self.name}: {error}") from error

    def maps(self, x: Tensor) -> Tensor:
        """Return an output of the block as feature maps (images, channels, height, width)."""
        return x if self._layout is None else self._layout.to_nchw(x)


def blocks(
    model: nn.Module,
    images: Tensor | npt.NDArray[Any],
    points: Points | None = None,
    norms: Side = "after",
) -> list[Block]:
    """Return the blocks of a network, each of which can be called.

    `images` are a batch as the network takes it, a tensor or an array of two images or more;
    `points` are the modules to read, in place of the cut points that are found; `norms` says
    whether cut points lie "after" or "before" the normalization of sums of stream and branch.
    Starting with `x = images`,

        for block in vitscope.blocks(network, images):
            x = block(x)

    computes what the network computes. Each block is first run on the images: if its output differs
    from that of the network in any bit, its `why_not` says so. The network is in evaluation mode
    during this call only. Blocks use the weights of the network, without copying them.
    """
    model = unwrap_compiled(model)
    choose_device_for_lending(model, None)
    images = _check_batch(images).to(device_of(model), own_type(model))
    size = tuple(images.shape[-2:])
    network = {"mean": [0.0] * images.shape[1], "image_size": size, "classes": None}
    with lend(model), torch.no_grad():
        found = list_blocks(type(model).__name__, model, network, points, norms)
        replay = Replay(model, found.points, images)
        # The images, and the stream at each cut point.
        stream = [images]
        with capturing_tensors(
            model, found.points, lambda _, tensor: stream.append(tensor.clone())
        ):
            ends = ends_of(model(images))
        reasons = [
            _why_not_alone(replay, part, *pair) for part, pair in enumerate(pairwise(stream))
        ]
        of_head = [_why_not_alone(replay, len(reasons), stream[-1], end) for end in ends]
    table = found.table
    made = [
        Block(point.name, point.kind, point.stage, depth, reason, part, point.layout, replay)
        for part, (point, depth, reason) in enumerate(
            zip(found.points, table["depth"], reasons, strict=True)
        )
    ]
    # Where the network returns several tensors, the head has to match one of them.
    why_not = None if None in of_head else of_head[0]
    head = Block("head", "head", made[-1].stage, 1.0, why_not, len(made), None, replay)
    return [*made, head]


def _check_batch(images: Tensor | npt.NDArray[Any]) -> Tensor:
    batch = torch.as_tensor(images)
    if batch.ndim != 4 or len(batch) < 2 or not batch.is_floating_point():
        raise VitscopeError(
            f"`images` are {str(batch.dtype).removeprefix('torch.')} of the shape "
            f"{tuple(batch.shape)}, allowed: two images or more, (N, C, H, W), normalized as the "
            f"network takes them."
        )
    return batch


def _why_not_alone(replay: Replay, part: int, given: Tensor, expected: Tensor) -> str | None:
    try:
        found = replay.run(part, given)
    except (RuntimeError, TypeError, ValueError, VitscopeError) as error:
        return str(error)
    if found.shape == expected.shape and torch.equal(found, expected):
        return None
    return "alone it gives other values than in the network"
