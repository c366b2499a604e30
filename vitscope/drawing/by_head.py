"""A value of each head by depth, a panel per model: the heads, their mean and its interval."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.points import Published
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import GRAY, HEAD, HEAD_ALPHA, REFERENCE
from vitscope.drawing.panels import make_panels


def plot(
    table: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published] | None = None,
    *,
    value: str,
    label: str,
    mean: str = "mean of heads",
    column: str = "",
    reference: str = "",
    named: str = "attending to all alike",
) -> Figure:
    """Draw a column of the table of attention by normalized depth, one panel per model.

    `label` is what the column is called, `mean` what the legend calls its mean over heads, and
    `column` what published points call it. `reference` is a column that is drawn beside the mean,
    and `named` what the legend calls it.
    """
    panels = make_panels(len(members))
    measured = table[table[value].notna()]
    for panel in panels.of_models(members, measured, ["attention", "head"], published):
        means, theirs = panel.rows[panel.rows["head"].isna()], panel.theirs
        heads = panel.rows[panel.rows["head"].notna()]
        style = {**HEAD, "color": panel.look.color, "alpha": HEAD_ALPHA}
        panel.axes.plot(heads["depth"], heads[value], **style, clip_on=False)
        panel.legend.add_line("head", {**HEAD, "color": GRAY})
        panel.legend.add_marker(mean, panel.look.line, panel.look)
        panel.draw_interval(means["depth"], means[f"{value}_low"], means[f"{value}_high"])
        panel.draw_curve(means["depth"], means[value])
        if reference:
            panel.axes.plot(means["depth"], means[reference], **REFERENCE, zorder=1)
            panel.legend.add_line(named, REFERENCE)
        if theirs:
            back = panel.behind(label.lower())
            # Published blocks stand where the measured attentions of the same numbers are.
            depths = theirs.points["block"].map(means.set_index("attention")["depth"])
            panel.draw_published(back, theirs, depths, theirs.points[column], "mean of heads")
            begin_at_zero(back)
        panel.axes.set(xlim=(0, 1))
        begin_at_zero(panel.axes)
    return panels.finish("Normalized depth", label)
