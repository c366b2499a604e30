"""Sketch figures of the paper for the overview: the points of one model in a small panel.

The points are either measured or published.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator

from vitscope.claims.claim import in_order
from vitscope.claims.points import Points
from vitscope.corruptions import MEAN
from vitscope.drawing.changes import Change, draw_bars
from vitscope.drawing.looks import BANDS, RANGE_ALPHA, SKETCHED, THIN, ZERO, Look
from vitscope.drawing.panels import Panel
from vitscope.measures.components import diagonals, ends_of_curves
from vitscope.measures.feature_variance.show import CHANGE_OF_VARIANCE
from vitscope.measures.fourier.show import AMPLITUDE, CHANGE_OF_COMPONENT, COMPONENT
from vitscope.measures.hessian.claims import sizes_up_to_training
from vitscope.measures.hessian.show import density_per_decade, published_per_decade


def _plot_small(axes: Axes, x: Any, y: Any, look: Look, **style: Any) -> None:
    axes.plot(x, y, **look.curve | SKETCHED | style)


def _points_by_depth(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a point for each cut point: of measured spectra, their ends."""
    return ends_of_curves(diagonals(rows)) if "measure" in rows else rows


def _sketch_by_depth(panel: Panel, value: str, label: str) -> None:
    points = _points_by_depth(panel.rows)
    panel.draw_bands(points)
    _plot_small(panel.axes, points["depth"], points[value], panel.look)
    panel.axes.set(xlabel="Normalized depth", ylabel=label, xlim=(-0.02, 1.02))


def _sketch_changes(panel: Panel, value: str, change: Change) -> None:
    points = _points_by_depth(panel.rows)
    draw_bars(panel, Points(in_order(points, points)), value, change)
    change.scale(panel.axes)
    # A small panel has room for the ends of the linear part, and for the second decade beyond.
    ends = [sign * (change.linear or 1) * times for times in (1, 100) for sign in (-1, 1)]
    panel.axes.yaxis.set_major_locator(FixedLocator(ends))
    panel.axes.set(xlabel="Normalized depth", ylabel=change.label, xlim=(-0.02, 1.02))


_VARIANCE, _COMPONENT = "variance", "delta_log_amplitude"
sketch_feature_variance = partial(_sketch_by_depth, value=_VARIANCE, label="Feature map variance")
sketch_fourier_depth = partial(_sketch_by_depth, value=_COMPONENT, label=COMPONENT)
sketch_feature_variance_change = partial(
    _sketch_changes, value=_VARIANCE, change=CHANGE_OF_VARIANCE
)
sketch_fourier_depth_change = partial(_sketch_changes, value=_COMPONENT, change=CHANGE_OF_COMPONENT)


def sketch_fourier_curves(panel: Panel) -> None:
    """Draw the amplitudes at each cut point, with later cut points more opaque."""
    axes, points, look = panel.axes, panel.rows, panel.look
    if "measure" in points:
        points = diagonals(points)
    last = points["index"].max()
    for index, curve in points.sort_values(["index", "frequency"]).groupby("index"):
        amplitude = curve["delta_log_amplitude"]
        alpha = 0.15 + 0.85 * float(str(index)) / last
        _plot_small(axes, curve["frequency"], amplitude, look, marker="", alpha=alpha)
    axes.set(xlabel="Frequency (π)", ylabel=AMPLITUDE)


def sketch_frequency_noise(panel: Panel) -> None:
    axes, points, look = panel.axes, panel.rows, panel.look
    points = points.sort_values("frequency")
    axes.axhline(0, **ZERO, zorder=0)
    _plot_small(axes, points["frequency"], points["change"], look)
    axes.set(xlabel="Frequency of the noise (π)", ylabel="Change of accuracy (points)")


def sketch_fit(panel: Panel) -> None:
    axes, points, look = panel.axes, panel.rows, panel.look
    value = points.set_index("metric")["value"]
    _plot_small(axes, [value["error_percent"]], [value["nll_train"]], look)
    axes.set(xlabel="Test error (%)", ylabel="Training NLL")
    axes.margins(0.15)


_POWERS = {-1000: "\N{MINUS SIGN}10³", 0: "0", 1000: "10³"}


def sketch_hessian(panel: Panel) -> None:
    """Draw the density of eigenvalues per decade, from the most negative to the largest."""
    axes, points, look = panel.axes, panel.rows, panel.look
    if "density" in points:
        at, density = published_per_decade(points)
    else:
        shown = points["images"] == sizes_up_to_training([points])[-1]
        found = points.loc[shown, "eigenvalue"].to_numpy()
        reach = np.geomspace(0.1, 2 * np.abs(found).max(), 200)
        sides = -reach[::-1], reach
        at = np.concatenate(sides)
        density = np.concatenate([density_per_decade(found, side) for side in sides])
    axes.fill_between(at, density, color=look.color, alpha=RANGE_ALPHA, lw=0)
    axes.plot(at, density, color=look.color, lw=THIN)
    # Small ticks between the powers of ten say that the axis is logarithmic.
    axes.set_xscale("symlog", linthresh=1, subs=range(1, 10))
    axes.set_xticks([*_POWERS], labels=[*_POWERS.values()])
    axes.tick_params(axis="x", which="minor", length=1.2)
    axes.set(xlabel="Hessian max eigenvalue", ylabel="Density per decade")


def sketch_lesion(panel: Panel) -> None:
    axes, points, look = panel.axes, panel.rows, panel.look
    units = points.sort_values("index")
    depth = (np.arange(len(units)) + 0.5) / len(units)
    for place in np.flatnonzero(units["kind"] == "msa"):
        ends = place / len(units), (place + 1) / len(units)
        axes.axvspan(*ends, **BANDS["msa"])
    axes.axhline(0, **ZERO, zorder=0)
    _plot_small(axes, depth, units["change"], look, linestyle="")
    axes.set(xlabel="Units in order", ylabel="Change of accuracy (points)")


def sketch_robustness_by_accuracy(panel: Panel) -> None:
    axes, points, look = panel.axes, panel.rows, panel.look
    if "corruption" in points:
        mean = points[points["corruption"] == MEAN]
        accuracy, robustness = (100 * (1 - mean[each]) for each in ("clean_error", "error"))
        points = pd.DataFrame({"accuracy": accuracy, "robustness": robustness})
    _plot_small(axes, points["accuracy"], points["robustness"], look, linestyle="")
    axes.set(xlabel="Accuracy (%)", ylabel="Robustness (%)")
    axes.margins(0.15)
