"""The principal components of the filters of the first layer, as pictures."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.text import percent
from vitscope.measures.patch_filters.table import COMPONENT
from vitscope.measures.patch_filters.tiles import draw_tiles


def _title(member: Member, rows: pd.DataFrame) -> str:
    if rows.empty:
        return f"{member.label}\nfilters that do not differ"
    count, shown = rows["count"].iloc[0], len(rows)
    if shown == count:
        return f"{member.label}\nall {count} components"
    share = percent(rows["share"].sum(), ".1f")
    return f"{member.label}\nfirst {shown} of {count}: {share} of the variance"


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: the principal components of its filters, the first ones first."""
    return draw_tiles(table, members, COMPONENT, _title)
