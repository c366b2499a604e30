"""The points, measured or published, that claims count, and depth bands."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from vitscope.claims.intervals import RESAMPLED
from vitscope.errors import VitscopeError, nearest
from vitscope.files.arrays import Array


@dataclass(frozen=True)
class Band:
    """A range of normalized depth, from the cut point before a block to the one after it."""

    kind: Literal["msa", "subsampling"]
    start: float
    end: float


def subsamples(points: pd.DataFrame) -> pd.Series:
    """Return for each cut point of a model, in order, whether its block shrinks the map.

    Published points say so themselves, and have no sizes of maps.
    """
    if "subsampling" in points:
        return points["subsampling"].astype(bool)
    pixels = points["height"] * points["width"]
    return pixels < pixels.shift()


def bands(points: pd.DataFrame) -> list[Band]:
    """Return the bands of one model from its cut points, which must be in order."""
    found = []
    of_blocks = zip(subsamples(points)[1:], points["kind"][1:], strict=True)
    ends = pairwise(points["depth"].to_list())
    for (shrinks, kind), (start, end) in zip(of_blocks, ends, strict=True):
        if shrinks:
            found.append(Band("subsampling", start, end))
        if kind == "msa":
            found.append(Band("msa", start, end))
    return found


def at_snapshots(
    tables: Mapping[str, pd.DataFrame], snapshots: Sequence[str]
) -> dict[str, pd.DataFrame]:
    """Keep the rows of some snapshots, in the order named; keep all rows if none is named."""

    def keep_snapshots(table: pd.DataFrame) -> pd.DataFrame:
        if not snapshots or "snapshot" not in table:
            return table
        rows = table[table["snapshot"].isin(snapshots)]
        return rows.sort_values("snapshot", kind="stable", key=lambda at: at.map(snapshots.index))

    return {name: keep_snapshots(table) for name, table in tables.items()}


@dataclass(frozen=True)
class PublishedCurve:
    """A published curve; `points` are its rows of the file, sorted."""

    series: str
    points: pd.DataFrame
    same_model: bool


# The published curves of a figure, by model.
AllPublished = Mapping[str, PublishedCurve]


def read_published_points(
    path: Path | str, columns: Set[str], series: Mapping[str, str], same_models: bool = False
) -> dict[str, PublishedCurve]:
    """Read the published curve of each model in `series` from a file, which must have `columns`."""
    try:
        frame = pd.read_csv(path)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise VitscopeError(
            f"Cannot read the published points {path}: name a file of "
            "vitscope/claims/published_points/."
        ) from error
    missing = sorted({"model", *columns} - set(frame.columns))
    if missing:
        raise VitscopeError(
            f"{path} has no curves of this figure (columns missing: {', '.join(missing)}): "
            "name another file of vitscope/claims/published_points/."
        )
    names = list(dict.fromkeys(frame["model"]))
    curves = {}
    for model, name in series.items():
        if name not in names:
            raise VitscopeError(
                f"{path} has no series '{name}' for the model {model}, only {', '.join(names)}."
                f"{nearest(name, names)}"
            )
        keys = [key for key in ("index", "block", "frequency") if key in frame]
        points = frame[frame["model"] == name].drop(columns="model").sort_values(keys)
        points = points.rename(columns={"normalized_depth": "depth"}).reset_index(drop=True)
        curves[model] = PublishedCurve(name, points, same_models)
    return curves


def published_points_of_figure(
    published: Mapping[str, Any] | None, columns: Set[str], files: Iterable[str]
) -> dict[str, PublishedCurve]:
    """Read the published curves that a figure names, if any; its file must have `columns`."""
    if not published:
        return {}
    path = next(path for path in files if Path(path).name == published["file"])
    series = {name: name for name in published["others"]} | published["series"]
    return read_published_points(path, columns, series, published["same_models"])


class Points:
    """The points of one model; `frame` has a row for each, as measured.

    A column such as `points["variance"]` is an array of (1 + resamples, points): first the values
    as measured, then one row for each resample, if resamples are known.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        lists = [str(name) for name in frame if str(name).endswith(RESAMPLED)]
        self.frame = frame.drop(columns=lists).reset_index(drop=True)
        self._resampled: dict[str, Array] = {}
        for name in lists:
            # A point may have no resamples.
            size = max((len(each) for each in frame[name] if np.ndim(each) == 1), default=0)
            if size:
                none = np.full(size, np.nan)
                rows = [each if np.ndim(each) == 1 else none for each in frame[name]]
                # (resamples, points)
                stacked = np.stack(rows, axis=1).astype(np.float64)
                self._resampled[name.removesuffix(RESAMPLED)] = stacked

    def __getitem__(self, column: str) -> Array:
        """Return the values of a column: as measured in the first row, resampled in the others."""
        values = self.frame[column].to_numpy(np.float64)[None]
        if column not in self._resampled:
            return values
        return np.concatenate([values, self._resampled[column]])

    def __len__(self) -> int:
        return len(self.frame)

    def __contains__(self, column: str) -> bool:
        return column in self.frame

    def where(self, chosen: Any) -> "Points":
        """Return the points for which `chosen` is true."""
        mask = np.asarray(chosen, bool)
        some = Points(self.frame[mask])
        some._resampled = {name: each[:, mask] for name, each in self._resampled.items()}
        return some

    def known(self, column: str) -> "Points":
        """Return the points that have a value in a column."""
        return self.where(self.frame[column].notna())
