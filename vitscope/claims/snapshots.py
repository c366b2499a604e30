"""The rows of tables that are of some snapshots."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def at_snapshots(
    tables: "Mapping[str, pd.DataFrame]", snapshots: Sequence[str]
) -> "dict[str, pd.DataFrame]":
    """Return tables with the rows of some snapshots, in their order, or all if none is named."""

    def select(table: "pd.DataFrame") -> "pd.DataFrame":
        if not snapshots or "snapshot" not in table:
            return table
        rows = table[table["snapshot"].isin(snapshots)]
        return rows.sort_values("snapshot", kind="stable", key=lambda at: at.map(snapshots.index))

    return {name: select(table) for name, table in tables.items()}
