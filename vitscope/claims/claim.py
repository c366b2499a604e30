"""What a claim is: which models it is about, how it is counted, and when it holds."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import product

import pandas as pd

from vitscope.claims.chance import share_interval

# The kinds of the cut points of each model of a figure, in the order of the figure.
KindsOf = Mapping[str, Collection[str]]
# What a claim is about: a model, or a model and the one that it is compared with.
Subject = tuple[str, ...]

# More than this share of what is counted must do as claimed.
HALF = 0.5


@dataclass(frozen=True)
class Finding:
    """What the points say of a claim: a share of what is counted, or a difference of two models.

    A share has a `count` of a `total`. A difference of two shares has the count and total of the
    first model, and as `versus` the count and total of the second. `interval` is the 95 % interval
    of the value: that of a share is Wilson's, that of a difference of two values that have one
    Newcombe's.
    """

    value: float
    count: int | None = None
    total: int | None = None
    versus: tuple[int, int] | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, `statement`, and how it is counted.

    `source` is where the paper says it, `measure` is what its values are, and `rule` explains to
    readers how they are found. `about` chooses models, or pairs of models, by the kinds of their
    cut points; `find` takes the points of the model, or of both, and returns None where there is
    nothing to count.
    """

    name: str
    statement: str
    source: str
    measure: str
    rule: str
    about: Callable[[KindsOf], list[Subject]]
    find: Callable[..., Finding | None]
    holds_above: float = HALF


def share(in_favour: pd.Series) -> Finding | None:
    """Find the share of what is in favour; None where there is nothing to count."""
    count, total = int(in_favour.sum()), len(in_favour)
    if not total:
        return None
    return Finding(count / total, count, total, interval=share_interval(count, total))


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
