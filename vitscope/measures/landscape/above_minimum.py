"""What the figures of landscapes share: the loss above its minimum, and where it is cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError

Array = npt.NDArray[Any]

LABEL = "Loss above its minimum"

# The paper shows what is below 42, which is 4.4 times the median of the published ViT.
_CUT_OVER_MEDIAN = 4.4


@dataclass(frozen=True)
class AboveMinimum:
    """The loss of a model above its minimum: a row for each y, NaN where it is not finite."""

    x: Array
    y: Array
    loss: Array

    def below(self, cut: float) -> Array:
        """Return the loss, NaN where it is above the cut."""
        return np.where(self.loss <= cut, self.loss, np.nan)


def points_of(table: pd.DataFrame, member: Member) -> pd.DataFrame:
    """Return the points of a model, x fastest: a whole grid, some of it finite."""
    points = table[table["model"] == member.model].sort_values(["y", "x"], ignore_index=True)
    if points.empty or len(points) != points["x"].nunique() * points["y"].nunique():
        raise VitscopeError(
            f"The landscape table has {len(points)} points of the model '{member.model}', which "
            f"are no whole grid: delete the table and run again."
        )
    if not np.isfinite(points["loss"]).any():
        raise VitscopeError(
            f"The loss of {member.label} is finite nowhere on its landscape: check its checkpoint, "
            f"or lower analysis.landscape.radius."
        )
    return points


def above_minimum(table: pd.DataFrame, member: Member) -> AboveMinimum:
    """Return the loss of a model on its grid, above the lowest point of it."""
    points = points_of(table, member)
    x, y = points["x"].unique(), points["y"].unique()
    loss = points["loss"].to_numpy(np.float64).reshape(len(y), len(x))
    finite = np.where(np.isfinite(loss), loss, np.nan)
    return AboveMinimum(x, y, finite - np.nanmin(finite))


def common_cut(landscapes: Sequence[AboveMinimum]) -> float:
    """Return the loss at which all landscapes of a figure are cut.

    It follows from the flattest one, so that it is whole and others rise as steeply as they are.
    """
    flattest = min(float(np.nanmedian(each.loss)) for each in landscapes)
    highest = max(float(np.nanmax(each.loss)) for each in landscapes)
    cut = min(_CUT_OVER_MEDIAN * flattest, highest)
    return cut or 1.0


def caveats(table: pd.DataFrame, members: Sequence[Member]) -> str:
    """Return what of the training loss is missing from these landscapes, for all to see."""
    shown = table[table["model"].isin([member.model for member in members])]
    missing = []
    if (shown["weight_decay"] == 0).any():
        missing.append("without the L2 term")
    if shown["clean"].any():
        missing.append("on clean images")
    return f"Not the loss of training: {' and '.join(missing)}" if missing else ""
