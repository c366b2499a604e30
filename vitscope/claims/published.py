"""The points of the published figures, as far as they are known."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vitscope.errors import VitscopeError, nearest


@dataclass(frozen=True)
class Published:
    """One published curve: `points` has the columns of its file, in the order of their keys.

    Among these are, as far as the figure has them, index, depth, frequency, kind and subsampling.
    """

    series: str
    points: pd.DataFrame
    same_model: bool


def _read(path: Path, columns: Set[str]) -> pd.DataFrame:
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
    return frame


def read_published(
    path: Path | str,
    columns: Set[str],
    series: Mapping[str, str],
    same_models: bool = False,
) -> dict[str, Published]:
    """Read the published curve of each model from a file with some columns.

    `series` maps the study's models to names in the file; `same_models` says that the study
    measures the very checkpoints that were published, so that values can be compared.
    """
    frame = _read(Path(path), columns)
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
        curves[model] = Published(name, points, same_models)
    return curves


def read_published_of(
    published: Mapping[str, Any] | None, columns: Set[str], files: Iterable[str]
) -> dict[str, Published]:
    """Read the published curves that a figure of a study names, if it names any.

    `columns` are what a figure of its kind needs of the file, which is one of `files`.
    """
    if not published:
        return {}
    path = next(path for path in files if Path(path).name == published["file"])
    series = {name: name for name in published["others"]} | published["series"]
    return read_published(path, columns, series, published["same_models"])
