"""What a claim is: which models it is about, how it is counted, on what, and when it holds."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import pandas as pd

from vitscope.claims.depth_bands import subsamples
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic
from vitscope.measures.columns import RESAMPLED


@dataclass(frozen=True)
class Traits:
    """What models are told apart by: the kinds of their cut points, and what a study says of them.

    `settings` are its family and its data, and the keys of its network and of its training, as
    `arch.class_token` and `training.images`. Of a network in memory none are known.
    """

    kinds: Collection[str]
    settings: Mapping[str, Any] = field(default_factory=dict)


# The models of a figure, in the order of the figure.
Models = Mapping[str, Traits]
# What a claim is about: a model, or a model and the one that it is compared with.
Subject = tuple[str, ...]

# Makes the points of one model from its rows in a table and its rows in the block table.
Measured = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Claim:
    """What somebody says of networks, and how it is counted.

    `source` is where it is said, `about` chooses models, or pairs of models, by their traits, and
    `why` tells readers what was found there, and what else they must know. The rest of the rule
    they read is that of the statistic, which takes the points of the model, or of both.
    """

    name: str
    statement: str
    source: str
    about: Callable[[Models], list[Subject]]
    statistic: Statistic
    why: str = ""

    @property
    def rule(self) -> str:
        """How the claim is counted, in words."""
        return " ".join(filter(None, (self.why, self.statistic.rule, self.statistic.bound)))

    def find(self, *points: Points) -> Found | None:
        """Find what points say; None where there is nothing to count."""
        return self.statistic.find(*points)


@dataclass(frozen=True)
class Curve:
    """The columns of a curve; with `by`, a model has a curve for each value of that column.

    Of a `log` curve, ratios are compared: its values are not logarithms yet.
    """

    x: str
    y: str
    by: str | None = None
    log: bool = False


@dataclass(frozen=True)
class Evidence:
    """Claims, and the points that they are counted on: the same columns, measured or published.

    `measured` makes the points of one model from its rows in the table of the name `table` and its
    rows in the block table; `published` makes them from its published points. A column of the
    table that was resampled may have its resamples beside it. With `curve`, the measured points are
    scored against the published ones.
    """

    table: str
    claims: tuple[Claim, ...]
    measured: Measured
    published: Callable[[pd.DataFrame], pd.DataFrame] = lambda points: points
    curve: Curve | None = None


def with_subsampling(points: pd.DataFrame) -> pd.DataFrame:
    """Add to the points of one model, in order, whether the block before each subsamples."""
    return points.assign(subsampling=subsamples(points))


def in_order(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return the points of one model from a table of one row per cut point."""
    return with_subsampling(rows.sort_values("index", ignore_index=True))


def value_in_row(value: str, column: str, name: str) -> Measured:
    """Return how to find the point of a model in one row of its table, by a name in a column.

    Its measure is the column that has the value.
    """

    def measured(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
        row = rows[rows[column] == name]
        resampled = row.get(f"{value}{RESAMPLED}")
        return row.assign(measure=value, value=row[value], **{f"value{RESAMPLED}": resampled})

    return measured


def every_model(models: Models) -> list[Subject]:
    """Choose all models."""
    return [(model,) for model in models]


def every_pair(models: Models) -> list[Subject]:
    """Pair all models, in the order of the figure."""
    return [*combinations(models, 2)]


def convolutional(models: Models) -> list[Subject]:
    """Choose the models that have Convs and no MSAs."""
    having = {model: traits.kinds for model, traits in models.items()}
    return [(model,) for model, kinds in having.items() if "conv" in kinds and "msa" not in kinds]


def attending(models: Models) -> list[Subject]:
    """Choose the models that have MSAs."""
    return [(model,) for model, traits in models.items() if "msa" in traits.kinds]


def attention_against_convolution(models: Models) -> list[Subject]:
    """Pair each model that has MSAs with each convolutional one."""
    pairs = product(attending(models), convolutional(models))
    return [(*ours, *theirs) for ours, theirs in pairs]


def hybrid_against_convolution(models: Models) -> list[Subject]:
    """Pair each model that has both MSAs and Convs with each convolutional one."""
    pairs = attention_against_convolution(models)
    return [pair for pair in pairs if "conv" in models[pair[0]].kinds]
