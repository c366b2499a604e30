"""The filters of the first layer, as pictures."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.measures.patch_filters.table import FILTER
from vitscope.measures.patch_filters.tiles import draw_tiles


def _title(member: Member, rows: pd.DataFrame) -> str:
    first, shown = rows.iloc[0], len(rows)
    of = f"first {shown} of {first['count']}" if shown < first["count"] else f"{shown}"
    return f"{member.label}\n{of} filters of {first['height']}×{first['width']} pixels"


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: its filters, each from its lowest value to its highest."""
    return draw_tiles(table, members, FILTER, _title)
