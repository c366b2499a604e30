"""A figure of a study: its members, and how it is drawn from tables.

A module that draws a kind of figure has a function `plot`, which takes the tables of the kind in
order, the members and the published curves, and returns a figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from vitscope.claims.snapshots import select_snapshots

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vitscope.claims.published import Published


@dataclass(frozen=True)
class Member:
    """A model of a figure: its name in the tables, what to call it, and its family.

    `epoch` is after how many epochs of training it is shown, in a figure that is about that.
    """

    model: str
    label: str
    family: str
    epoch: int | None = None


def draw(
    module: str,
    tables: Sequence["pd.DataFrame"],
    members: Sequence[Member],
    published: Mapping[str, "Published"],
    snapshots: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> "Figure":
    """Draw a figure by the module of its kind; call it within `saving.style`.

    With `snapshots`, of a kind that has them, it shows these in this order and no others. `values`
    are keyword arguments of its `plot`.
    """
    plot = import_module(module).plot
    shown = [select_snapshots(table, snapshots) if snapshots else table for table in tables]
    figure: Figure = plot(*shown, members, published, **(values or {}))
    return figure
