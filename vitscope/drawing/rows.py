"""The rows of a table that are drawn of one model."""

from collections.abc import Sequence

import pandas as pd


def rows_of(
    table: pd.DataFrame, model: str, order: Sequence[str] = (), snapshot: str = ""
) -> pd.DataFrame:
    """Return the rows of a model, of one snapshot and in order.

    Rows that are alike in it keep the order that they have.
    """
    chosen = table["model"] == model
    if snapshot:
        chosen &= table["snapshot"] == snapshot
    rows = table[chosen]
    if not order:
        return rows
    return rows.sort_values(list(order), ignore_index=True, kind="stable")
