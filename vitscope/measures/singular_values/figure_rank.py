"""The effective rank of tokens and of pooled images by depth."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing import layout
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import DOTTED, GRAY, THIN
from vitscope.drawing.panels import Panel
from vitscope.measures.singular_values.table import IMAGES, TOKENS

_MOST = {"color": GRAY, **DOTTED}


def _draw(panel: Panel, tokens: pd.DataFrame, images: pd.DataFrame) -> None:
    depth, look = tokens["depth"], panel.look
    panel.draw_bands(tokens)
    panel.axes.plot(depth, tokens["most"], **_MOST, zorder=2)
    panel.axes.plot(
        images["depth"], images["effective_rank"], **look.hollow, lw=THIN, clip_on=False
    )
    panel.legend.add_marker("tokens of an image", look.line, look)
    panel.legend.add_marker("pooled images", look.hollow, look)
    panel.legend.add_line("most for tokens", _MOST)
    panel.draw_interval(depth, tokens["ci_low"], tokens["ci_high"])
    panel.draw_curve(depth, tokens["effective_rank"])


def plot(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw one panel per model: the effective rank of tokens and of images by depth."""
    panels = layout.panels(len(members))
    for panel in panels.of_models(members, table):
        rows = panel.rows
        tokens, images = (rows[rows["of"] == of].reset_index(drop=True) for of in (TOKENS, IMAGES))
        _draw(panel, tokens, images)
        panel.axes.set_ylim(bottom=0)
    return panels.finish("Normalized depth", "Effective rank")
