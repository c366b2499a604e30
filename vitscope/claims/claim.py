"""What a claim is: which models it is about, how it is counted, on what, and when it holds."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import pandas as pd

from vitscope.claims.chance import correlation_interval, share_interval


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

# More than this share must do as claimed.
HALF = 0.5


@dataclass(frozen=True)
class Finding:
    """What the points say of a claim: a share of what is counted, or a difference of two models.

    A share has a `count` of a `total`. A difference of two shares has the count and total of the
    first model, and as `versus` the count and total of the second. `interval` is the 95 % interval
    of the value: that of a share is Wilson's, that of a difference of two values that have one
    Newcombe's, that of a rank correlation by Fisher's z.
    """

    value: float
    count: int | None = None
    total: int | None = None
    versus: tuple[int, int] | None = None
    interval: tuple[float, float] | None = None


Find = Callable[..., Finding | None]
# Makes the points of one model from its rows in a table and its rows in the block table.
Measured = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, `statement`, and how it is counted.

    `source` is where the paper says it, `measure` is what its values are, and `rule` explains to
    readers how they are found. `about` chooses models, or pairs of models, by their traits; `find`
    takes the points of the model, or of both, and returns None where there is nothing to count.
    """

    name: str
    statement: str
    source: str
    measure: str
    rule: str
    about: Callable[[Models], list[Subject]]
    find: Find
    holds_above: float = HALF


def claim(
    statement: str,
    source: str,
    measure: str,
    about: Callable[[Models], list[Subject]],
    *,
    rule: str = "",
    more: str = "",
    holds_above: float = HALF,
) -> Callable[[Find], Claim]:
    """Make a claim of the function that finds it, whose name it has.

    The rule is the docstring, and what `more` adds to it, unless several claims share a `rule`.
    """

    def make(find: Find) -> Claim:
        said = rule or " ".join(f"{find.__doc__} {more}".split())
        return Claim(find.__name__, statement, source, measure, said, about, find, holds_above)

    return make


@dataclass(frozen=True)
class Curve:
    """The columns of a curve; with `by`, a model has a curve for each value of that column."""

    x: str
    y: str
    by: str | None = None


@dataclass(frozen=True)
class Evidence:
    """Claims, and the points that they are counted on: the same columns, measured or published.

    `measured` makes the points of one model from its rows in the table of the name `table` and its
    rows in the block table; `published` makes them from its published points. With `curve`, the
    measured points are scored against the published ones.
    """

    table: str
    claims: tuple[Claim, ...]
    measured: Measured
    published: Callable[[pd.DataFrame], pd.DataFrame] = lambda points: points
    curve: Curve | None = None


def share(in_favour: pd.Series) -> Finding | None:
    """Find the share in favour; None where there is nothing to count."""
    count, total = int(in_favour.sum()), len(in_favour)
    if not total:
        return None
    return Finding(count / total, count, total, interval=share_interval(count, total))


def rank_correlation(
    x: pd.Series, y: pd.Series, sign: int = 1, independent: int | None = None
) -> Finding | None:
    """Find the rank correlation (Spearman) of two columns, times a sign; None where it has none.

    `independent` is how many of the points are, if not all: as many the interval is of.
    """
    from scipy.stats import spearmanr

    if len(x) < 3 or x.nunique() == 1 or y.nunique() == 1:
        return None
    value = sign * float(spearmanr(x, y).statistic)
    points = len(x) if independent is None else independent
    return Finding(value, interval=correlation_interval(value, points))


def mean_excess(pairs: pd.DataFrame, value: str, alike: str) -> Finding | None:
    """Find by how much a value of pairs that are `alike` exceeds others at the same distance.

    Pairs that are near each other are similar anyway: only equal distances compare.
    """
    means = pairs.groupby(["distance", alike])[value].mean().unstack()
    if not {True, False} <= {*means.columns}:
        return None
    differences = (means[True] - means[False]).dropna()
    return Finding(float(differences.mean())) if len(differences) else None


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
