"""Translate the weights of a file to the names of a network.

Whose names they are is seen by the names, and what they are to become by the class of the network:
no family has a hand in it. Names may have something before them, where a network was saved as a
part of something larger.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import nn

from vitscope.networks.checkpoints.entries import DEEPEST_NESTING, StateDict
from vitscope.networks.checkpoints.layouts import WeightLayout, find_layout
from vitscope.networks.checkpoints.matching import misfits
from vitscope.networks.checkpoints.timm_filters import (
    apply_filter,
    classes_of_timm,
    find_filter,
    watch_translation,
)


@dataclass(frozen=True)
class Translated:
    """Weights under the names of a network, as far as they are known.

    `by` says whose names were translated, empty if none were; `left_out` names the weights that
    the network has no use for. `misfit` counts what is missing, and what is left over.
    """

    weights: StateDict
    by: str
    left_out: tuple[str, ...]
    misfit: tuple[int, int]

    @property
    def fits(self) -> bool:
        """Whether the weights are all that the network needs, and no more."""
        return self.misfit == (0, 0)


# Whose names timm translates, its own filters do not say.
OF_AUTHORS = "the network's authors"
# Weights under other names, whose they were, and the tensors that it computed with.
Attempt = tuple[StateDict, str, set[int]]


def translate(weights: StateDict, model: nn.Module, classifier: Collection[str] = ()) -> Translated:
    """Return the weights under the network's own names: of all ways, that which fits it best.

    `classifier` are names that the network would have if it classified: such weights are left out.
    Counters of batches may be missing: old checkpoints lack them, and inference ignores them.
    """
    wanted = model.state_dict()
    counters = {
        name: torch.zeros_like(tensor, device="cpu")
        for name, tensor in wanted.items()
        if name.endswith(".num_batches_tracked")
    }
    best = None
    for found, by, used in _attempts(weights, model):
        kept = {n: tensor for n, tensor in found.items() if n in wanted or n not in classifier}
        there = used.union(map(id, kept.values()))
        left_out = tuple(name for name, tensor in weights.items() if id(tensor) not in there)
        misfit = misfits(counters | kept, wanted).counts
        if best is None or misfit < best.misfit:
            best = Translated(counters | kept, by, left_out, misfit)
        if best.fits:
            break
    assert best is not None
    return best


def _attempts(weights: StateDict, model: nn.Module) -> Iterator[Attempt]:
    """Yield weights as they are and by every translation, whatever stands before their names."""
    for inner in _peel(weights):
        yield inner, "", set()
        if (of_timm := find_filter(model)) is not None:
            # Of another file it may make anything: its errors are of all types.
            with suppress(Exception):
                found, used = watch_translation(lambda w: apply_filter(of_timm, w, model), inner)
                yield found, OF_AUTHORS, used
        layout = find_layout(inner)
        if layout is not None and suits(layout, model):
            found, used = watch_translation(layout.translate, inner)
            yield found, layout.name, used


def suits(layout: WeightLayout, model: nn.Module) -> bool:
    """Tell whether a layout is of the weights of such a network."""
    return layout.network in (kind.__name__ for kind in classes_of_timm(model))


def _peel(weights: StateDict) -> Iterator[StateDict]:
    """Yield the weights, and again without the first word that most of their names begin with.

    Two weights must not get the same name by that.
    """
    yield weights
    for _ in range(DEEPEST_NESTING):
        ((outer, _),) = Counter(name.partition(".")[0] for name in weights).most_common(1)
        inner = {name.removeprefix(f"{outer}."): value for name, value in weights.items()}
        if len(inner) < len(weights) or inner.keys() == weights.keys():
            return
        weights = inner
        yield weights
