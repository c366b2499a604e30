"""What a claim is: whom it is about, what speaks for it, and when it holds."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import product

import pandas as pd

# The tables that claims are counted on, by name; "blocks" is always among them.
Tables = Mapping[str, pd.DataFrame]
# The kinds of the cut points of each model of a figure, in the order of the figure.
KindsOf = Mapping[str, Collection[str]]
# Whom a claim is about: a model, or a model and the one that it is compared with.
Subject = tuple[str, ...]

# More than this share of what is counted must do as claimed.
HALF = 0.5


@dataclass(frozen=True)
class Finding:
    """What points say of a claim: a share and what it counts, or a difference.

    A difference of two shares has the counts of both: its own, and as `versus` those of the other
    model. `interval` is the 95 % interval of the value; `apart` tells of a difference whether the
    intervals of each model alone are apart.
    """

    value: float
    count: int | None = None
    total: int | None = None
    versus: tuple[int, int] | None = None
    interval: tuple[float, float] | None = None
    apart: bool | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that points can speak for or against.

    `about` chooses models, or pairs of models, by the kinds of their cut points; `find` takes the
    points of one, or of both, and returns None where these say nothing.
    """

    name: str
    statement: str
    source: str
    measure: str
    rule: str
    about: Callable[[KindsOf], list[Subject]]
    find: Callable[..., Finding | None]
    holds_above: float = HALF


def share(favours: pd.Series) -> Finding | None:
    """Find the share of what is in favour; nothing has none."""
    count, total = int(favours.sum()), len(favours)
    return Finding(count / total, count, total) if total else None


def apart(ours: pd.DataFrame, theirs: pd.DataFrame) -> bool | None:
    """Tell whether the intervals of two models, one row each, are apart; None without both."""
    ends = ["ci_low", "ci_high"]
    if not all({*ends} <= {*points} for points in (ours, theirs)):
        return None
    rows = pd.concat([ours, theirs])[ends].astype(float)
    if len(rows) != 2 or rows.isna().any(axis=None):
        return None
    return bool(rows["ci_low"].max() > rows["ci_high"].min())


def every_model(kinds_of: KindsOf) -> list[Subject]:
    """Choose all models."""
    return [(model,) for model in kinds_of]


def convolutional(kinds_of: KindsOf) -> list[Subject]:
    """Choose the models that have Convs and no MSAs."""
    return [(model,) for model, kinds in kinds_of.items() if "conv" in kinds and "msa" not in kinds]


def attending(kinds_of: KindsOf) -> list[Subject]:
    """Choose the models that have MSAs."""
    return [(model,) for model, kinds in kinds_of.items() if "msa" in kinds]


def attention_against_convolution(kinds_of: KindsOf) -> list[Subject]:
    """Pair each model that has MSAs with each convolutional one."""
    pairs = product(attending(kinds_of), convolutional(kinds_of))
    return [(*ours, *theirs) for ours, theirs in pairs]


def hybrid_against_convolution(kinds_of: KindsOf) -> list[Subject]:
    """Pair each model that has both MSAs and Convs with each convolutional one."""
    pairs = attention_against_convolution(kinds_of)
    return [pair for pair in pairs if "conv" in kinds_of[pair[0]]]
