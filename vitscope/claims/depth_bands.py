"""What happens between two cut points: attention, subsampling; the bands of every figure."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import pandas as pd


@dataclass(frozen=True)
class Band:
    """A stretch of normalized depth, from the cut point before a block to the one after it."""

    kind: Literal["msa", "subsampling"]
    start: float
    end: float


def subsamples(points: pd.DataFrame) -> pd.Series:
    """Tell for each cut point of one model, in order, whether its block shrinks the map.

    A branch that pools and keeps the size, as in PoolFormer, is of the kind pool and does not.
    """
    pixels = points["height"] * points["width"]
    return pixels < pixels.shift()


def bands(points: pd.DataFrame) -> list[Band]:
    """Return the bands of one model from its cut points, which must be in order."""
    attends = points["kind"] == "msa"
    shrinks = subsamples(points)
    ends = points["depth"].to_list()
    found = []
    for after, (start, end) in enumerate(pairwise(ends), start=1):
        if shrinks.iloc[after]:
            found.append(Band("subsampling", start, end))
        if attends.iloc[after]:
            found.append(Band("msa", start, end))
    return found
