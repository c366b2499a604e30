"""How much keys depend on the query, by depth."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing.by_head import plot_by_head
from vitscope.drawing.figure import Member


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: every head by normalized depth, and the mean of heads."""
    return plot_by_head(
        "nmi",
        "Mutual information",
        table,
        members,
        published,
        column="attention_nmi",
    )
