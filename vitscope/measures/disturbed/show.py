from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.ticker import NullLocator

from vitscope.claims.points import AllPublished
from vitscope.drawing.charts import AlongX, Curve
from vitscope.drawing.figure import Members
from vitscope.drawing.legends import published_legend_label
from vitscope.drawing.looks import DOTTED, GRAY, REFERENCE, THREAD, ZERO, Look, looks_of, text_scale
from vitscope.drawing.panels import Panels, make_panels, members_apart, page_width, stack_panels
from vitscope.files.arrays import Array
from vitscope.measures.disturbed.frequency_noise import (
    filter_images,
    noise_filter,
    noise_ring,
    random_noise_signs,
)

_LABEL = "Change of accuracy (points)"

_HEIGHT = 2.75  # inches: a figure with pictures above its axes
_BELOW = 1.35  # inches: a panel of published points below it
_LOW = 2.4  # inches: a figure without pictures
# If the labels have this many characters or more in all, the legend needs the page's full width.
_MANY = 25
_PICTURE = 15.5  # points: the side of a picture
_GAP = 2.5  # points: between two pictures
_STRIP = 4  # points: between the axes and the lower pictures
_CHARACTER = 4.2  # points: the width of a character
_BESIDE = 62  # points: how much narrower axes are than their figure
_MARGIN = 1 / 16  # on either side of the frequencies, as a share of their range
# Show few pixels: noise of high frequency is visible only if single pixels are.
_NOISE_PIXELS = 32
_MARKERS = "osD^v<>"
_GRAY: dict[str, Any] = {"cmap": "gray_r", "norm": Normalize(0, 1), "interpolation": "nearest"}


def _frequency_label(frequency: float) -> str:
    return f"{frequency:g}π"


def _frequencies_apart(frequencies: Sequence[float], gap: float) -> list[float]:
    """Keep frequencies that lie at least `gap` from the last one kept."""
    chosen: list[float] = []
    for frequency in frequencies:
        if not chosen or frequency - chosen[-1] >= gap:
            chosen.append(frequency)
    return chosen


def _ring_and_noise_pictures(frequency: float, width: float, size: int) -> tuple[Array, Array]:
    """Return two pictures: the ring in the Fourier plane, and a corner of one draw of the noise.

    Both have values from 0 to 1.
    """
    mask = noise_ring(frequency, width, size)
    (noise,) = filter_images(random_noise_signs(0, [0], size), [noise_filter(mask)])
    corner = noise[0, 0, :_NOISE_PIXELS, :_NOISE_PIXELS]
    return mask.astype(float), 0.5 + 0.5 * corner / np.abs(corner).max()


def _draw_noise_pictures(axes: Axes, points: pd.DataFrame, shown: Sequence[float]) -> None:
    width, size = points["width"][0], int(points["image_size"][0])
    above = axes.get_xaxis_transform()
    offsets = {"ring": _STRIP + _PICTURE + _GAP, "noise": _STRIP}
    for name, offset in offsets.items():
        axes.annotate(
            name,
            (0, 1),
            xytext=(-3, offset + _PICTURE / 2),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            va="center",
        )
    for frequency in shown:
        pictures = _ring_and_noise_pictures(frequency, width, size)
        for picture, offset in zip(pictures, offsets.values(), strict=True):
            image = OffsetImage(picture, zoom=_PICTURE / len(picture), **_GRAY)
            axes.add_artist(
                AnnotationBbox(
                    image,
                    (frequency, 1),
                    xybox=(0, offset),
                    xycoords=above,
                    boxcoords="offset points",
                    box_alignment=(0.5, 0),
                    pad=0,
                    bboxprops={"linewidth": THREAD},
                )
            )


def _draw_noise_frequencies(axes: Axes, points: pd.DataFrame, inches: float) -> None:
    frequencies = points["frequency"].tolist()
    span = frequencies[-1] - frequencies[0] or 1
    axes.set_xlim(frequencies[0] - _MARGIN * span, frequencies[-1] + _MARGIN * span)
    longest = max(len(_frequency_label(frequency)) for frequency in frequencies)
    needed = max(_PICTURE + _GAP, _CHARACTER * text_scale() * longest)
    room = 72 * inches - _BESIDE * text_scale()
    shown = _frequencies_apart(frequencies, needed / room * (1 + 2 * _MARGIN) * span)
    axes.set_xticks(shown, map(_frequency_label, shown))
    _draw_noise_pictures(axes, points, shown)


def plot_frequency_noise(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw the change of accuracy by frequency, all models in one panel, and the noise above it.

    Published points of other models stand in a panel below.
    """
    apart = bool(members_apart(members, published))
    rows = stack_panels(1, 1 + apart)
    upper, lower = rows[0], rows[-1]
    many = sum(len(member.label) for member in members) >= _MANY
    upper.resize(page_width() if many else None, (_HEIGHT + _BELOW * apart) * text_scale())
    upper.legend.add_models(members)
    curve = Curve("change", style=lambda look: look.curve | {"clip_on": True})
    for panel in upper.of_groups([members], table, ["frequency"]):
        curve.draw(panel, AlongX("frequency"))
    for member, look in zip(members, looks_of(members), strict=True):
        if theirs := published.get(member.model):
            style = look.hollow | DOTTED
            lower.axes[0].plot(theirs.points["frequency"], theirs.points["change"], **style)
            label = published_legend_label(published.values(), others="other models")
            lower.legend.add_line(label, style, look)
    for axes in dict.fromkeys([*upper.axes, *lower.axes]):
        axes.axhline(0, **ZERO, zorder=0)
        axes.margins(x=_MARGIN)
    _draw_noise_frequencies(upper.axes[0], panel.rows, upper.figure.get_figwidth())
    if apart:
        upper.label("", upper.in_lines(_LABEL))
        lower.axes[0].set_title("Published")
        lower.axes[0].xaxis.set_major_formatter(lambda frequency, _: _frequency_label(frequency))
    return lower.finish("Frequency of the noise", lower.in_lines(_LABEL))


def _draw_disturbed_accuracy(
    table: pd.DataFrame, members: Members, change: str, across: str
) -> tuple[Panels, Axes]:
    panels = make_panels(1)
    panels.resize(height=_LOW)
    (axes,) = panels.axes
    panels.legend.add_models(members)
    shown = table[table["change"].isin(["none", change])]
    for panel in panels.of_groups([members], shown, [across]):
        Curve("accuracy", times=100).draw(panel, AlongX(across))
    for chance in sorted({*shown["chance"]}):
        axes.axhline(100 * chance, **REFERENCE, zorder=1)
        panels.legend.add_line("chance", REFERENCE)
    axes.set_ylim(0, 100)
    return panels, axes


def plot_occlusion(
    table: pd.DataFrame, members: Members, published: AllPublished | None = None
) -> Figure:
    """Draw the accuracy by the share of the patches that are dropped."""
    table = table.assign(percent=100 * table["share"])
    panels, axes = _draw_disturbed_accuracy(table, members, "dropped", "percent")
    colors = {m.model: look.color for m, look in zip(members, looks_of(members), strict=True)}
    for (model, theirs), marker in zip((published or {}).items(), cycle(_MARKERS), strict=False):
        style = Look(colors.get(model, GRAY), marker).hollow | DOTTED
        points = 100 * theirs.points[["share", "accuracy"]]
        axes.plot(points["share"], points["accuracy"], **style, clip_on=False, zorder=2.5)
        panels.legend.add_line(f"{theirs.series} (published)", style)
    axes.set_xlim(0, 100)
    return panels.finish("Patches dropped (%)", "Accuracy (%)")


def plot_shuffling(table: pd.DataFrame, members: Members) -> Figure:
    """Draw the accuracy by the grid whose patches are shuffled."""
    panels, axes = _draw_disturbed_accuracy(table, members, "shuffled", "grid")
    axes.set_xscale("log")
    grids = sorted({*table.loc[table["change"] != "dropped", "grid"]})
    axes.set_xticks(grids, [f"{grid}×{grid}" for grid in grids])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(grids[0], grids[-1])
    return panels.finish("Grid of patches that are shuffled", "Accuracy (%)")
