"""The points that claims are counted on: as measured, and in each resample of the images."""

from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.measures.columns import RESAMPLED


class Points:
    """The points of one model; `frame` has a row for each, as measured.

    A column, `points["variance"]`, is an array with a row for the values as measured and, if its
    resamples are known, one for each of these: (1 + resamples, points).
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        lists = [str(name) for name in frame if str(name).endswith(RESAMPLED)]
        self.frame = frame.drop(columns=lists).reset_index(drop=True)
        self._resampled: dict[str, Array] = {}
        for name in lists:
            known = [each is not None and np.ndim(each) == 1 for each in frame[name]]
            if any(known):
                self._resampled[name.removesuffix(RESAMPLED)] = _stacked(frame[name], known)

    def __getitem__(self, column: str) -> Array:
        """Return the values of a column: the first row as measured, the others resampled."""
        values = self.frame[column].to_numpy(np.float64)[None]
        if column not in self._resampled:
            return values
        return np.concatenate([values, self._resampled[column]])

    def __len__(self) -> int:
        return len(self.frame)

    def __contains__(self, column: str) -> bool:
        return column in self.frame

    def where(self, chosen: Any) -> "Points":
        """Return some of the points, by a truth for each."""
        mask = np.asarray(chosen, bool)
        some = Points(self.frame[mask])
        some._resampled = {name: each[:, mask] for name, each in self._resampled.items()}
        return some

    def known(self, column: str) -> "Points":
        """Return the points that have a value in a column."""
        return self.where(self.frame[column].notna())


def _stacked(lists: pd.Series, known: list[bool]) -> Array:
    """Return the resamples of all points, (resamples, points); NaN where a point has none."""
    size = max(len(each) for each, there in zip(lists, known, strict=True) if there)
    none = np.full(size, np.nan)
    rows = [each if there else none for each, there in zip(lists, known, strict=True)]
    return np.stack(rows, axis=1).astype(np.float64)
