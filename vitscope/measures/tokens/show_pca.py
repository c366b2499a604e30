"""Draw tokens below their images, with the first three principal components as colours."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import percent
from vitscope.drawing.looks import GRAY, HAIR
from vitscope.drawing.pictures import draw_picture, groups_of_pictures, read_picture
from vitscope.files.arrays import Array

BACKGROUND, OUTLIER = "white", 0.6


def component_range(components: Array) -> tuple[Array, Array]:
    """Return the lowest and the highest value of each of three components (..., 3)."""
    there = components[~np.isnan(components[..., 0])]
    if not len(there):
        return np.zeros(3), np.zeros(3)
    return there.min(axis=0), there.max(axis=0)


def in_colours(components: Array, low: Array, high: Array) -> Array:
    """Return components (..., 3) as red, green, blue and opacity (..., 4); NaN is transparent."""
    opaque = np.isfinite(components[..., :1]).astype(float)
    scaled = np.nan_to_num(components - low) / np.where(high > low, high - low, 1)
    return np.concatenate([scaled.clip(0, 1), opaque], axis=-1)


def pca_colours_of(rows: pd.DataFrame) -> list[Array]:
    """Return the colours (H, W, 4) of each image of a model, all images on one scale."""
    maps = [
        np.reshape(row["components"], (row["height"], row["width"], 3))
        for _, row in rows.iterrows()
    ]
    scale = component_range(np.concatenate([each.reshape(-1, 3) for each in maps]))
    return [in_colours(each, *scale) for each in maps]


def _draw_pca_tokens(axes: Axes, colours: Array, row: pd.Series, size: tuple[int, int]) -> None:
    high, wide = size
    extent = (-0.5, wide - 0.5, high - 0.5, -0.5)
    outliers = np.isnan(np.reshape(row["first"], colours.shape[:2]))
    grey = np.dstack([np.full((*outliers.shape, 3), OUTLIER), outliers.astype(float)])
    for layer in (grey, colours):
        axes.imshow(layer, extent=extent, interpolation="nearest")
    axes.spines[:].set(visible=True, color=GRAY, linewidth=HAIR)


def plot_token_pca(table: pd.DataFrame, members: Members) -> Figure:
    """Draw for each model the images in a row, and below each image the colours of its tokens."""
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    groups = groups_of_pictures([(2, len(rows)) for rows in shown], one_scale=True)
    titles = []
    for rows, grid, member in zip(shown, groups.grids, members, strict=True):
        panels = zip(rows.iterrows(), pca_colours_of(rows), grid.T, strict=False)
        for (_, row), colours, (above, below) in panels:
            pixels = read_picture(row["picture"])
            draw_picture(above, pixels)
            _draw_pca_tokens(below, colours, row, pixels.shape[:2])
        explained = percent(float(np.sum(rows["explained"].iloc[0])), ".0f")
        titles.append(f"{member.label} ({rows['of'].iloc[0]}; {explained} of the variance)")
    groups.titles(titles)
    assert groups.strip is not None
    meanings = {"background": BACKGROUND, "outlier": str(OUTLIER)}
    legend = [Patch(facecolor=it, edgecolor=GRAY, label=name) for name, it in meanings.items()]
    groups.strip.legend(handles=legend, ncols=2, loc="center", frameon=False)
    return groups.figure
