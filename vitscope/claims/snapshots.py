"""The rows of a table that are of some snapshots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def select_snapshots(table: "pd.DataFrame", snapshots: Sequence[str]) -> "pd.DataFrame":
    """Return the rows of some snapshots, in the order in which these are named."""
    rows = table[table["snapshot"].isin(snapshots)]
    return rows.sort_values("snapshot", kind="stable", key=lambda names: names.map(snapshots.index))
