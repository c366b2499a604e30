import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from vitscope.claims.points import AllPublished, PublishedCurve
from vitscope.drawing.charts import Chart, Curve, Level, Rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import INTERVAL, published_legend_label
from vitscope.drawing.looks import CURVE, HOLLOW_OF_ALL, INTERVAL_BAR, OF_ALL, ZERO
from vitscope.drawing.panels import Panel, make_panels, members_apart

_LABEL = "Change of accuracy\nwithout the block (points)"
# The `source` of a published point that lies outside its figure, and so was extrapolated.
_OFF_SCALE = "extrapolated_offscale"
_OFF_SCALE_MARKER = 7  # A caret that points down.


def _draw_published_lesions(panel: Panel, theirs: PublishedCurve) -> None:
    units, look = theirs.points, panel.look
    # The index of published units begins at 0, and their depth goes from 0 to 1.
    depth = (units["index"] + 0.5) / (round((units["index"] / units["depth"]).iloc[-1]) + 1)
    off = units.get("source", pd.Series("", units.index)) == _OFF_SCALE
    size = 1.6 * look.line["markersize"]
    caret = {**look.hollow, "marker": _OFF_SCALE_MARKER, "markersize": size}
    panel.legend.add_marker("measured", look.line, look)
    panel.legend.add_marker(published_legend_label([theirs]), look.hollow, look)
    if off.any():
        panel.legend.add_marker("extrapolated", caret, look)
    for rows, style in ((~off, look.hollow), (off, caret)):
        panel.axes.plot(depth[rows], units["change"][rows], linestyle="", **style, zorder=2.5)


def plot_lesion(
    table: pd.DataFrame, blocks: pd.DataFrame, members: Members, published: AllPublished
) -> Figure:
    """Draw one panel per model: the change of accuracy without each unit, in the unit's band."""
    apart = members_apart(members, published)
    panels = make_panels(len(members) + len(apart))
    models = panels.of_models(members, table, published=published)
    for panel, member in zip(models, members, strict=True):
        points = rows_of(blocks, member.model, ["index"])
        panel.draw_bands(points)
        if panel.theirs:
            _draw_published_lesions(panel, panel.theirs)
        # A unit is in the middle of its band.
        middles = points.set_index("index")["depth"].rolling(2).mean()
        units, look = panel.rows, panel.look
        depth, low = middles[units["index"]].reset_index(drop=True), units["ci_low"]
        panel.axes.vlines(depth, low, units["ci_high"], color=look.color, lw=CURVE, zorder=3)
        panel.axes.plot(depth, units["change"], **look.line, linestyle="", zorder=3)
        if low.notna().any():
            panel.legend.add_marker(INTERVAL, {**INTERVAL_BAR, "color": look.color}, look.color)
    for panel, member in zip(panels.of_published(apart, published), apart, strict=True):
        _draw_published_lesions(panel, published[member.model])
        panel.axes.set_xlim(0, 1)
    for axes in panels.axes:
        axes.axhline(0, **ZERO, zorder=0.5)
    return panels.finish("Normalized depth", _LABEL, "shared")


_DASHED = {"linestyle": "--"}


def _log_scale_of_ratios(*panels: Axes) -> None:
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(axes.dataLim.y0 / 1.2, 1.2 * axes.dataLim.y1)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()


plot_skip_ratio = Chart(
    Rows(
        "Norm of shortcut / branch",
        Curve("ratio", "positions", {"tokens": "positions"}, in_legend=OF_ALL),
        Curve(
            "ratio",
            "class token",
            {"tokens": "class_token"},
            lambda look: look.hollow | _DASHED,
            in_legend=HOLLOW_OF_ALL | _DASHED,
        ),
        Level(1, ZERO | {"zorder": 0.5}),
        scale=_log_scale_of_ratios,
        scales="shared",
    ),
    bands_from=1,
)
