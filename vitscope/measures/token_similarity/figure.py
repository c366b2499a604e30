"""Token similarity by depth."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing.by_depth import plot_by_depth
from vitscope.drawing.figure import Member


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: the mean cosine of tokens by normalized depth, and the bands."""
    label = "Cosine similarity of tokens"
    return plot_by_depth(
        "token_similarity", "similarity", label, table, members, published, from_zero=False
    )
