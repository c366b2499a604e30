"""Relative log amplitudes over frequency, a curve for each cut point: Fig. 2a of the paper."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing import layout
from vitscope.drawing.axes import depth_bar, share_scale
from vitscope.drawing.figure import Member
from vitscope.measures.fourier.figure_shared import AMPLITUDE, curves_of, draw_curves


def _with_depth(curves: pd.DataFrame) -> pd.DataFrame:
    return curves.assign(depth=curves["index"] / curves["index"].max())


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model, and below it, if there are any, one of the published curves.

    All panels have the same scale and colours.
    """
    rows = layout.stacked_panels(len(members), 2 if published else 1)
    for panel in rows[0].of_models(members, *curves_of(table)):
        draw_curves(panel.axes, panel.rows)
    drawn = list(rows[0].axes)
    for axes, member in zip(rows[1].axes if published else (), members, strict=bool(published)):
        theirs = published.get(member.model)
        if theirs is None:
            axes.remove()
            continue
        draw_curves(axes, _with_depth(theirs.points))
        same = "" if theirs.same_model else "\n(another model)"
        axes.set_title(f"Published: {theirs.series}{same}")
        drawn.append(axes)
    share_scale(drawn)
    depth_bar(drawn)
    for row in rows:
        row.label("Frequency", AMPLITUDE)
    return rows[0].figure
