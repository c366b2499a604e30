"""What makes a verdict on a network doubtful: an accuracy of chance, or none measured."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from vitscope.claims.intervals import known_share_interval

# The tables that have a network's accuracy on images as they are: which rows, and as what.
_ACCURACIES: dict[str, tuple[str, Callable[[Any], float]]] = {
    "fit": ("metric == 'error_percent'", lambda row: 1 - row["value"] / 100),
    "classification": ("images > 0", lambda row: row["accuracy"]),
    "corruption_error": ("corruption == 'mean'", lambda row: 1 - row["clean_error"]),
}
ACCURACY_TABLES = tuple(_ACCURACIES)
UNKNOWN, CHANCE = "accuracy not measured", "accuracy of chance"


def doubt_claims(
    claims: pd.DataFrame, tables: Mapping[str, pd.DataFrame], classes: Mapping[str, int | None]
) -> pd.DataFrame:
    """Say beside each claim what makes its networks doubtful, from the tables that there are."""
    accurate = {
        model: _is_above_chance(accuracy, images, classes.get(model))
        for model, accuracy, images in _accuracies_of_networks(tables)
    }

    def doubt(*models: str) -> str | None:
        known = [accurate.get(model) for model in models if pd.notna(model)]
        return CHANCE if False in known else UNKNOWN if None in known else None

    said = [*map(doubt, claims["model"], claims["versus"])]
    return claims.assign(doubt=pd.Series(said, claims.index, dtype=object))


def _accuracies_of_networks(tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, float, int]]:
    """Return accuracies with their networks and numbers of images, that of most images last."""
    found = [
        (str(row["model"]), accuracy(row), int(row["images"]))
        for name, (which, accuracy) in _ACCURACIES.items()
        if name in tables
        for row in tables[name].query(which).to_dict("records")
    ]
    return sorted(found, key=lambda each: each[-1])


def _is_above_chance(accuracy: float, images: int, classes: int | None) -> bool:
    """Tell whether an accuracy is above that of guessing, by its 95 % interval over images."""
    return classes is None or known_share_interval(accuracy, images)[0] > 1 / classes
