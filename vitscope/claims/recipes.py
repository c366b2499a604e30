"""What claims say of recipes: networks that were trained several times, with other seeds."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.chance import (
    LEAST_TRAININGS,
    decide,
    false_discovery_rates,
    mean_interval,
)
from vitscope.files.arrays import Array

# What a row is about: one claim on one network, or two, at one moment, in whichever figure.
DISTINCT = ["model", "versus", "snapshot", "claim"]


@dataclass(frozen=True)
class Training:
    """Which recipe a network was trained by, and with which seed."""

    recipe: str
    seed: Any


# The training of each model that was trained several times.
Trainings = Mapping[str, Training]


def trainings(repeats: Sequence[Sequence[str]], seeds: Mapping[str, Any]) -> dict[str, Training]:
    """Return the training of each of the models that are one network with several seeds.

    The recipe has the name of its first model.
    """
    return {model: Training(group[0], seeds[model]) for group in repeats for model in group}


def add_recipes(claims: pd.DataFrame, of: Trainings) -> pd.DataFrame:
    """Add to counted claims what they say of recipes, the verdict, and how many chance decides.

    A recipe is decided by Student's interval over at least three trainings: of the value or, where
    cases are counted, of the mean by which they are in favour. Two recipes are compared by
    trainings with the same seed, which see the same images in the same order.
    """
    if claims.empty:
        return claims
    once = distinct(claims)
    found = {key: _over_trainings(rows) for key, rows in _by_recipe(once, of).items()}
    keys = [_key(row, of) for row in claims.to_dict("records")]
    said = pd.DataFrame(
        [_ONE if key is None else found.get(key, _ONE) for key in keys],
        columns=list(_ONE),
        index=claims.index,
    )
    rates = dict(zip(once.index, false_discovery_rates(once["p"].to_numpy(float)), strict=True))
    first = claims.groupby(DISTINCT, dropna=False)["claim"].transform(lambda rows: rows.index[0])
    counted = pd.concat([claims, said], axis=1)
    verdicts = pd.Series(map(_holds, counted.to_dict("records")), claims.index, dtype=object)
    return counted.assign(q=first.map(rates), holds=verdicts)


def distinct(claims: pd.DataFrame) -> pd.DataFrame:
    """Return each claim of a model, or of two, at a snapshot once."""
    return claims.drop_duplicates(DISTINCT)


# What a row says that is of one training.
_ONE: dict[str, Any] = {
    "trainings": 1,
    "values": None,
    "recipe_low": None,
    "recipe_high": None,
    "recipe_verdict": "one training",
}


def _holds(row: Mapping[Hashable, Any]) -> str | None:
    """Return the verdict: that on the recipe, or else what is known of the one network."""
    if pd.isna(row["measured_value"]):
        return None
    if row["recipe_verdict"] != "one training":
        return str(row["recipe_verdict"])
    of_network = str(row["measured_verdict"])
    return f"{of_network}, in this network" if of_network in ("yes", "no") else of_network


def _key(row: Mapping[Hashable, Any], of: Trainings) -> tuple[Any, ...] | None:
    """Return which claim on which recipes a row is about; None if one has a single training."""
    models = [row[name] for name in ("model", "versus") if pd.notna(row[name])]
    known = [of[model] for model in models if model in of]
    if len(known) < len(models) or len({training.seed for training in known}) != 1:
        return None
    snapshot = None if pd.isna(row["snapshot"]) else row["snapshot"]
    return (row["claim"], snapshot, *(training.recipe for training in known))


def _by_recipe(
    claims: pd.DataFrame, of: Trainings
) -> dict[tuple[Any, ...], list[dict[Hashable, Any]]]:
    rows: dict[tuple[Any, ...], list[dict[Hashable, Any]]] = {}
    for row in claims.to_dict("records"):
        key = _key(row, of)
        if key and pd.notna(row["measured_value"]):
            rows.setdefault(key, []).append(row)
    return rows


def _over_trainings(rows: Sequence[Mapping[Hashable, Any]]) -> dict[str, Any]:
    """Return what the trainings of a recipe say together."""
    if len(rows) < LEAST_TRAININGS:
        return _ONE
    counts = [row["measured_count"] for row in rows]
    values: Array = np.array([row["measured_value"] for row in rows], float)
    margins: Array = np.array([row["margin"] for row in rows], float)
    by_margin = bool(np.isfinite(margins).all())
    above = 0.0 if by_margin else rows[0]["holds_above"]
    compared = margins if by_margin else values
    interval = mean_interval(compared)
    low, high = interval or (None, None)
    shown = counts if pd.notna(counts).all() else values
    return {
        "trainings": len(rows),
        "values": [float(each) for each in shown],
        "recipe_low": low,
        "recipe_high": high,
        "recipe_verdict": decide(float(compared.mean()), above, interval),
    }
