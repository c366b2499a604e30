"""The points that the claims of a kind of figure are counted on."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from vitscope.claims.claim import Claim
from vitscope.files.tables import Table


@dataclass(frozen=True)
class Curve:
    """The columns of a curve; with `by`, a model has a curve for each value of that column."""

    x: str
    y: str
    by: str | None = None


# Makes the points of one model from its rows in a table and its rows in the block table.
Measured = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Evidence:
    """Claims, and the points that they are counted on: the same columns, measured or published.

    `measured` makes the points of one model from its rows in `table` and its rows in the block
    table; `published` makes them from its published points. With `curve`, the measured points are
    scored against the published ones.
    """

    table: Table
    claims: tuple[Claim, ...]
    measured: Measured
    published: Callable[[pd.DataFrame], pd.DataFrame] = lambda points: points
    curve: Curve | None = None
