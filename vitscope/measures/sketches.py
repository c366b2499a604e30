"""Sketch figures of the paper for the overview: the points of one model in a small panel.

`sketch_{kind}` draws points of a kind of figure, either measured or published.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from vitscope.corruptions import MEAN
from vitscope.drawing.looks import BANDS, RANGE_ALPHA, SKETCHED, THIN, ZERO, Look
from vitscope.measures.fourier.show import AMPLITUDE, diagonals, ends_of_curves
from vitscope.measures.hessian.claims import sizes_up_to_training
from vitscope.measures.hessian.show import density_per_decade, published_per_decade


def _plot_small(axes: Axes, x: Any, y: Any, look: Look, **style: Any) -> None:
    axes.plot(x, y, **look.curve | SKETCHED | style)


def _sketch_by_depth(axes: Axes, points: pd.DataFrame, value: str, label: str, look: Look) -> None:
    depth = points["depth"].to_numpy()
    for place in np.flatnonzero(points["kind"] == "msa"):
        axes.axvspan(*depth[[place - 1, place]], **BANDS["msa"])
    _plot_small(axes, depth, points[value], look)
    axes.set(xlabel="Normalized depth", ylabel=label, xlim=(-0.02, 1.02))


def sketch_feature_variance(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    _sketch_by_depth(axes, points, "variance", "Feature map variance", look)


def sketch_fourier_depth(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    if "measure" in points:
        points = ends_of_curves(diagonals(points))
    _sketch_by_depth(axes, points, "delta_log_amplitude", f"{AMPLITUDE} at 1.0π", look)


def sketch_fourier_curves(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    """Draw the amplitudes at each cut point, with later cut points more opaque."""
    if "measure" in points:
        points = diagonals(points)
    last = points["index"].max()
    for index, curve in points.sort_values(["index", "frequency"]).groupby("index"):
        amplitude = curve["delta_log_amplitude"]
        alpha = 0.15 + 0.85 * float(str(index)) / last
        _plot_small(axes, curve["frequency"], amplitude, look, marker="", alpha=alpha)
    axes.set(xlabel="Frequency (π)", ylabel=AMPLITUDE)


def sketch_frequency_noise(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    points = points.sort_values("frequency")
    axes.axhline(0, **ZERO, zorder=0)
    _plot_small(axes, points["frequency"], points["change"], look)
    axes.set(xlabel="Frequency of the noise (π)", ylabel="Δ accuracy (pp)")


def sketch_fit(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    value = points.set_index("metric")["value"]
    _plot_small(axes, [value["error_percent"]], [value["nll_train"]], look)
    axes.set(xlabel="Test error (%)", ylabel="Training NLL")
    axes.margins(0.15)


sketch_fit_by_window = sketch_fit


def sketch_hessian(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    """Draw the density of eigenvalues per decade, from the most negative to the largest."""
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
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks([-100, 0, 100])
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="Hessian max eigenvalue", ylabel="Density per decade")


def sketch_lesion(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    units = points.sort_values("index")
    depth = (np.arange(len(units)) + 0.5) / len(units)
    for place in np.flatnonzero(units["kind"] == "msa"):
        ends = place / len(units), (place + 1) / len(units)
        axes.axvspan(*ends, **BANDS["msa"])
    axes.axhline(0, **ZERO, zorder=0)
    _plot_small(axes, depth, units["change"], look, linestyle="")
    axes.set(xlabel="Units in order", ylabel="Δ accuracy (pp)")


def sketch_robustness_by_accuracy(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    if "corruption" in points:
        mean = points[points["corruption"] == MEAN]
        accuracy, robustness = (100 * (1 - mean[each]) for each in ("clean_error", "error"))
        points = pd.DataFrame({"accuracy": accuracy, "robustness": robustness})
    _plot_small(axes, points["accuracy"], points["robustness"], look, linestyle="")
    axes.set(xlabel="Accuracy (%)", ylabel="Robustness (%)")
    axes.margins(0.15)
