"""What the claims of a kind of figure are counted on, and how its curves are scored."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from vitscope.claims.claim import Claim, Tables

# The rows of one model in the table of a name.
RowsOf = Callable[[str], pd.DataFrame]


@dataclass(frozen=True)
class Curve:
    """The columns of a curve; `by` tells curves apart where the points of a model are of many."""

    x: str
    y: str
    by: str | None = None


@dataclass(frozen=True)
class Basis:
    """The points that claims are counted on, alike whether they are measured or published.

    `measured` makes them of a model's rows in `table`, and in that of its blocks; `published` of
    published points. `curve` says how one is scored against the other, if it is.
    """

    table: str
    claims: tuple[Claim, ...]
    measured: Callable[[RowsOf], pd.DataFrame]
    published: Callable[[pd.DataFrame], pd.DataFrame] = lambda points: points
    curve: Curve | None = None


def rows_of(tables: Tables, model: str) -> RowsOf:
    """Return how to find the rows of a model in each table."""

    def rows(name: str) -> pd.DataFrame:
        return tables[name][tables[name]["model"] == model]

    return rows
