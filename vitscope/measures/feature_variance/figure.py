"""Feature map variance by depth: Fig. 9 and Fig. D.1 of the paper."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing.by_depth import plot_by_depth
from vitscope.drawing.figure import Member


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: variance by normalized depth, its interval, and the bands."""
    label = "Feature map variance"
    return plot_by_depth("feature_variance", "variance", label, table, members, published)
