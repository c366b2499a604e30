from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from tests.drawn.places import Place

Places = npt.NDArray[np.float64]


@dataclass
class Sum:
    """A sum as it was computed: of which unit, its parts as (images, tokens, channels)."""

    unit: str
    stream: Tensor
    branch: Tensor
    result: Tensor
    place: Place
    kinds: frozenset[str]


@dataclass
class Attended:
    """What an attention attends to: weights (images, windows, heads, queries, keys), and where.

    `queries` and `keys` are the places of one window or of each, in pixels, NaN for what has none.
    `seen` says whether it is to be read, `softmax` whether torch computes it by a softmax of
    products: one that has none may be refused by these words.
    """

    module: str
    weights: Tensor
    queries: Places
    keys: Places
    seen: bool = True
    softmax: bool = True


@dataclass
class Board:
    """Counts the sums of a pass; leaves out the branches of one of them where it is active.

    `placed` says whether the positions of the stream are places still, not mixed and not sorted.
    """

    active: bool = False
    placed: bool = True
    off: int | None = None
    sums: list[Sum] = field(default_factory=list)
    attended: list[Attended] = field(default_factory=list)
    entries: list[tuple[str, Tensor]] = field(default_factory=list)
    count: int = 0
    muted: int = 0

    @contextmanager
    def watching(self, off: int | None = None) -> Iterator["Board"]:
        """Be active for a pass, without the branches of a sum."""
        self.active, self.off, self.count, self.placed = True, off, 0, True
        self.sums, self.attended, self.entries = [], [], []
        try:
            yield self
        finally:
            self.active, self.off = False, None

    @contextmanager
    def within(self) -> Iterator[None]:
        """Count no sums meanwhile: they lie within a branch."""
        self.muted += 1
        yield
        self.muted -= 1

    def is_off(self) -> bool:
        """Count a sum, and tell whether its branches are left out."""
        if self.muted:
            return False
        self.count += 1
        return self.count - 1 == self.off

    def note(self, entry: Any, into: list[Any]) -> None:
        """Take something down in a pass in which nothing is left out."""
        if self.active and self.off is None:
            into.append(entry)
