"""Prove on a network that its cut points are right: reading changes nothing, silencing does.

What is proved is what every measure relies on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.outputs import tensors_of
from vitscope.networks.building.plain_attention import without_fast_path
from vitscope.networks.finding.capture import Silencing, capturing
from vitscope.networks.finding.cut_points import CutPoint

# On so many images.
PROVED = 2


@dataclass(frozen=True)
class Proofs:
    """What was proved; `wrong` are sentences about what was not."""

    silenced: int
    restored: int
    wrong: list[str]


@torch.inference_mode()
def prove(model: nn.Module, points: Sequence[CutPoint], images: Tensor) -> Proofs:
    """Run a network with weights on some images: as it is, read, and without any branch.

    Read, it gives the same logits to the bit, and all cut points come in order. Without branches,
    the stream behind each is the stream before it to the bit, where its shortcut changes nothing.
    """
    wrong = []
    joins = {i: point.join for i, point in enumerate(points) if point.join is not None}
    names = frozenset[str]().union(*(join.names for join in joins.values()))
    with without_fast_path():
        # In a mode, as without branches: there torch may round otherwise.
        with Silencing(model, set()):
            plain = tensors_of(model(images))
            returned, _ = _read(model, points, images)
        if not all(map(torch.equal, plain, returned)):
            wrong.append("the logits change when the network is read")
        with Silencing(model, names, *joins.values()) as silencing:
            _, stream = _read(model, points, images)
        silencing.check()
    wrong += [
        f"without the branch of {quoted(points[index].name)} the stream is another than before it"
        for index, join in joins.items()
        if join.identity and not torch.equal(stream[index], stream[index - 1])
    ]
    restored = sum(join.identity for join in joins.values())
    return Proofs(len(joins), restored, wrong)


def refuse_unproven(
    where: str, model: nn.Module, points: Sequence[CutPoint], images: Tensor
) -> None:
    """Refuse to measure branches of a network of which that cannot be proved."""
    wrong = prove(model, points, images).wrong
    if wrong:
        raise VitscopeError(
            f"{where}: {wrong[0]}: branches of the network cannot be measured; take it out of this "
            f"figure."
        )


def _read(
    model: nn.Module, points: Sequence[CutPoint], images: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    stream: list[Tensor] = []
    with capturing(model, points, lambda _, latent: stream.append(latent.clone())):
        return tensors_of(model(images)), stream
