"""Prove on a network that its cut points are right: reading changes nothing, silencing does.

What is proved is what every measure relies on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vitscope.networks.building.outputs import tensors_of
from vitscope.networks.building.plain_attention import without_fast_path
from vitscope.networks.finding.capture import Silencing, capturing
from vitscope.networks.finding.cut_points import CutPoint


@dataclass(frozen=True)
class Proofs:
    """What was proved; `wrong` are sentences about what was not."""

    silenced: int
    restored: int
    wrong: list[str]


@torch.inference_mode()
def prove(model: nn.Module, points: Sequence[CutPoint], images: Tensor) -> Proofs:
    """Run a network with weights on some images: as it is, read, and without each branch.

    Read, it gives the same logits to the bit, and all cut points come in order. Without a branch,
    the stream behind is the stream before it to the bit, where its shortcut changes nothing.
    """
    wrong = []
    with without_fast_path():
        # In a mode, as without a branch: there torch may round otherwise.
        with Silencing(model, set()):
            plain = tensors_of(model(images))
            returned, stream = _read(model, points, images)
        if not all(map(torch.equal, plain, returned)):
            wrong.append("the logits change when the network is read")
        joins = {i: point.join for i, point in enumerate(points) if point.join is not None}
        for index, join in joins.items():
            with Silencing(model, join.names, join):
                _, changed = _read(model, points, images)
            if join.identity and not torch.equal(changed[index], stream[index - 1]):
                wrong.append(f"without the branch of {points[index].name} the stream changes")
    restored = sum(join.identity for join in joins.values())
    return Proofs(len(joins), restored, wrong)


def _read(
    model: nn.Module, points: Sequence[CutPoint], images: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    stream: list[Tensor] = []
    with capturing(model, points, lambda _, latent: stream.append(latent.clone())):
        return tensors_of(model(images)), stream
