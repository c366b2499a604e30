import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.points import AllPublished, Published
from vitscope.drawing.axes import share_zero
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import INTERVAL
from vitscope.drawing.looks import CURVE, INTERVAL_BAR, ZERO
from vitscope.drawing.panels import Panel, make_panels

_LABEL = "Δ accuracy (pp)"
# Free space above the highest point, as a share of the range from zero to the lowest point.
_ROOM = 0.06
# Marks a point beyond the range of the published figure, read from the slope of its line.
_OFF_SCALE = "extrapolated_offscale"
_OFF_SCALE_MARKER = 7  # A caret that points down.


def _draw_published(panel: Panel, theirs: Published, back: Axes) -> None:
    units, look = theirs.points, panel.look
    # Published units count from 0, and go from depth 0 to 1.
    depth = (units["index"] + 0.5) / (round((units["index"] / units["depth"]).iloc[-1]) + 1)
    off = units.get("source", pd.Series("", units.index)) == _OFF_SCALE
    size = 1.6 * look.line["markersize"]
    caret = {**look.hollow, "marker": _OFF_SCALE_MARKER, "markersize": size}
    panel.name_published(theirs)
    if off.any():
        panel.legend.add_marker("extrapolated", caret, look)
    for rows, style in ((~off, look.hollow), (off, caret)):
        back.plot(depth[rows], units["change"][rows], linestyle="", **style, zorder=2.5)


def plot_lesion(
    table: pd.DataFrame, blocks: pd.DataFrame, members: Members, published: AllPublished
) -> Figure:
    """Draw one panel per model: the change of accuracy without each unit, in the unit's band."""
    panels = make_panels(len(members))
    models = panels.of_models(members, table, published=published)
    drawn = set[Axes]()
    for panel, member in zip(models, members, strict=True):
        points = rows_of(blocks, member.model, ["index"])
        back = panel.behind(_LABEL)
        panel.draw_bands(points, back)
        back.axhline(0, **ZERO, zorder=0.5)
        if panel.theirs:
            _draw_published(panel, panel.theirs, back)
        # A unit is in the middle of its band.
        middles = points.set_index("index")["depth"].rolling(2).mean()
        units, look = panel.rows, panel.look
        depth, low = middles[units["index"]].reset_index(drop=True), units["ci_low"]
        panel.axes.vlines(depth, low, units["ci_high"], color=look.color, lw=CURVE, zorder=3)
        panel.axes.plot(depth, units["change"], **look.line, linestyle="", zorder=3)
        if low.notna().any():
            panel.legend.add_marker(INTERVAL, {**INTERVAL_BAR, "color": look.color}, look.color)
        drawn |= {panel.axes, back}
    # All zeros at one height, so that panels of one scale keep theirs beside published points.
    share_zero(drawn, lambda above: above + _ROOM)
    return panels.finish("Normalized depth", _LABEL, "shared")
