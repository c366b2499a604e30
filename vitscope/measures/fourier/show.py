from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MultipleLocator

from vitscope.claims.points import AllPublished
from vitscope.drawing.axes import begin_at_zero, depth_bar, in_percent, share_limits
from vitscope.drawing.changes import Change
from vitscope.drawing.charts import AlongX, Chart, Curve, PublishedPoints, Rows
from vitscope.drawing.figure import Members
from vitscope.drawing.looks import DIAGONAL, FREQUENCY_BANDS, curve_of_depth
from vitscope.drawing.panels import LEAST_ALIKE, make_panels, stack_panels
from vitscope.measures.components import diagonals, ends_of_models
from vitscope.measures.scores import with_accuracy_intervals

AMPLITUDE = "Δ log amplitude"
COMPONENT = "Δ log amplitude at 1.0π"
CHANGE_OF_COMPONENT = Change("Change of\nΔ log amplitude at 1.0π", linear=0.1)
_ENDS = Curve("delta_log_amplitude", change=CHANGE_OF_COMPONENT)
_BY_DEPTH = Chart(Rows(COMPONENT, PublishedPoints("delta_log_amplitude"), _ENDS))


def draw_fourier_curves(axes: Axes, curves: pd.DataFrame) -> None:
    """Draw the curve of each cut point with two frequencies or more, in the colour of its depth."""
    for _, curve in curves.groupby("index"):
        if len(curve) > 1:
            style = curve_of_depth(curve["depth"].iloc[0])
            axes.plot(curve["frequency"], curve["delta_log_amplitude"], **style)
    if not axes.lines:
        axes.text(0.5, 0.5, "undefined for these maps", ha="center", transform=axes.transAxes)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.xaxis.set_minor_locator(MultipleLocator(0.1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}π"))


def plot_fourier(table: pd.DataFrame, members: Members) -> Figure:
    """Draw two panels per model: its curves and, below them, their values at 1.0 pi by depth."""
    upper, lower = stack_panels(len(members), 2, LEAST_ALIKE)
    for panel in upper.of_models(members, diagonals(table)):
        draw_fourier_curves(panel.axes, panel.rows)
    ends = ends_of_models(table, members)
    for panel in lower.of_models(members, ends, ["index"]):
        panel.draw_bands(panel.rows)
        _ENDS.draw(panel, AlongX())
    depth_bar(upper.axes)
    upper.label("Frequency", AMPLITUDE, "shared")
    return lower.finish("Normalized depth", COMPONENT, "shared")


def plot_fourier_curves(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw the curves of each model in a panel, and published curves in a panel below."""
    rows = stack_panels(len(members), 2 if published else 1)
    for panel in rows[0].of_models(members, diagonals(table)):
        draw_fourier_curves(panel.axes, panel.rows)
    for panel in rows[1].of_published(members, published) if published else ():
        depth = panel.rows["index"] / panel.rows["index"].max()
        draw_fourier_curves(panel.axes, panel.rows.assign(depth=depth))
        share_limits([rows[0].axes[rows[1].axes.index(panel.axes)], panel.axes])
    depth_bar([axes for row in rows for axes in row.axes if axes in row.figure.axes])
    for row in rows:
        row.label("Frequency", AMPLITUDE, "own")
    return rows[0].figure


def plot_fourier_depth(
    table: pd.DataFrame,
    members: Members,
    published: AllPublished,
    change: bool = False,
    by_epoch: bool = False,
) -> Figure:
    """Draw one panel per model: the log amplitude at 1.0 pi minus the one at 0, by depth."""
    ends = ends_of_models(table, members)
    return _BY_DEPTH(ends, members=members, published=published, change=change, by_epoch=by_epoch)


def plot_averaging(
    fourier: pd.DataFrame, variance: pd.DataFrame, reliability: pd.DataFrame, members: Members
) -> Figure:
    """Draw three panels, each with all models.

    They show the variance by depth, the high-frequency component by depth, and the reliability.
    """
    panels = make_panels(3)
    legend = panels.legend
    legend.add_models(members)
    component = ends_of_models(fourier, members)
    filled = with_accuracy_intervals(reliability)
    drawn = (
        (variance, "depth", "variance", "Normalized depth", "Feature map variance"),
        (component, "depth", "delta_log_amplitude", "Normalized depth", COMPONENT),
        (filled, "confidence", "accuracy", "Mean confidence", "Accuracy"),
    )
    for axes, (table, x, y, below, beside) in zip(panels.axes, drawn, strict=True):
        for panel in replace(panels, axes=[axes]).of_groups([members], table, [x]):
            Curve(y).draw(panel, AlongX(x))
        axes.set(xlabel=below, ylabel=beside, xlim=(0, 1))
    begin_at_zero(panels.axes[0])
    panels.axes[2].plot([0, 1], [0, 1], **DIAGONAL)
    panels.axes[2].set_ylim(0, 1)
    legend.add_line("calibrated", DIAGONAL)
    legend.draw(panels.figure)
    return panels.figure


def plot_spectrum(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one panel per model: the share of the variance in each band, by normalized depth."""
    limits = table.drop_duplicates("band").set_index("band")
    begin, end = (f"{edge:g}π" for edge in limits.loc["middle", ["above", "up_to"]])
    ends = {"low": f"up to {begin}", "middle": f"{begin} to {end}", "high": f"above {end}"}
    shares = (
        Curve("share", f"{band}: {ends[band]}", {"band": band}, style)
        for band, style in FREQUENCY_BANDS.items()
    )
    rows = Rows("Share of the variance", *shares, limits=(0, 1), scale=in_percent)
    return Chart(rows, bands_of={"band": "low"})(table, members=members)
