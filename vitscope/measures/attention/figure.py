"""Where heads look in an image: maps of one block, and the rollout through all attention."""

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.looks import CROSS, CURVE, QUERY_COLORS
from vitscope.drawing.overlays import Groups, draw_map, draw_picture, groups_of_panels, read_picture
from vitscope.files.arrays import Array

# Into so many parts a position is cut, up and across, for a line that runs along its edges.
_FINE = 8


def scale_of(rows: pd.DataFrame) -> Normalize:
    """Return one scale for maps that compare, in percent of the attention of a query."""
    return Normalize(0, 100 * float(max(max(values) for values in rows["weights"])))


def label(
    groups: Groups,
    members: Sequence[Member],
    shown: Sequence[pd.DataFrame],
    scales: Sequence[Normalize],
    of: Callable[[pd.Series], str],
) -> None:
    """Put titles and colour bars to the maps of models; `of` says what a model shows."""
    firsts = [rows.iloc[0] for rows in shown]
    groups.titles(
        [f"{m.label}: {row['name']}{of(row)}" for m, row in zip(members, firsts, strict=True)]
    )
    groups.bars(scales, "Attention", " %")


def mask_of(weights: Array, mass: float) -> Array:
    """Tell which positions, the brightest first, hold a share of all that a map has."""
    order = np.argsort(-weights, kind="stable")
    held = np.cumsum(weights[order]) / weights.sum()
    mask = np.zeros(len(weights), bool)
    mask[order[: int(np.searchsorted(held, mass)) + 1]] = True
    return mask


def draw_weights(
    axes: Axes, row: pd.Series, scale: Normalize, size: tuple[int, int], side: float
) -> None:
    """Draw how much a query takes of each key, and a line around the share that is asked for.

    `size` is the size of the picture in pixels, `side` of the panel in inches.
    """
    weights = np.asarray(row["weights"])
    grid = (row["height"], row["width"])
    draw_map(axes, 100 * weights, grid, scale, size)
    if pd.notna(row["mass"]):
        _draw_line(axes, mask_of(weights, row["mass"]).reshape(grid), size, side)


def _draw_line(axes: Axes, mask: Array, size: tuple[int, int], side: float) -> None:
    """Draw a line along the edges of the positions of a mask, over a picture of `size` pixels."""
    large = np.pad(np.kron(mask, np.ones((_FINE, _FINE))), 1)
    down, across = (
        (np.arange(-1, cells * _FINE + 1) + 0.5) * pixels / (cells * _FINE) - 0.5
        for pixels, cells in zip(size, mask.shape, strict=True)
    )
    # In a panel smaller than an inch, the line is thinner.
    width = CURVE * min(1, side)
    axes.contour(across, down, large, [0.5], colors="white", linewidths=width)


# So many heads stand side by side.
_BESIDE = 8


def plot_attention_maps_heads(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw for each model and image the image, and a map of every head, in lines of some heads."""
    heads = table[table["shows"] == "heads"]
    shown = [rows_of(heads, each.model, ["image", "head"]) for each in members]
    images = max(rows["image"].nunique() for rows in shown)
    most = max(rows["head"].nunique() for rows in shown)
    lines = ceil(most / _BESIDE)
    columns = 1 + ceil(most / lines)
    groups = groups_of_panels(len(members), images * lines, columns)
    scales = [scale_of(rows) for rows in shown]
    for rows, grid, scale in zip(shown, groups.grids, scales, strict=True):
        unused = {*grid.ravel()}
        for number, (_, image) in enumerate(rows.groupby("image")):
            unused -= _draw_heads(image, grid[number * lines :][:lines], scale, groups.side)
        for axes in unused:
            axes.remove()
    label(groups, members, shown, scales, lambda row: f" ({row['of']})")
    return groups.figure


def _draw_heads(heads: pd.DataFrame, grid: Array, scale: Normalize, side: float) -> set[Axes]:
    """Draw an image and a map of each head of it; return the panels that were drawn in."""
    pixels = read_picture(heads["picture"].iloc[0])
    draw_picture(grid[0, 0], pixels)
    if (heads["of"] == "query").all():
        place = heads[["query_column", "query_row"]].iloc[0] - 0.5
        grid[0, 0].plot(*place, color="white", **CROSS)
    panels = grid[:, 1:].ravel()[: len(heads)]
    for (_, head), axes in zip(heads.iterrows(), panels, strict=True):
        draw_weights(axes, head, scale, pixels.shape[:2], side)
        axes.set_title(f"head {head['head']}", fontsize="small", pad=2)
    return {grid[0, 0], *panels}


def plot_attention_maps_query(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw for each model a row for each image: the image, and a map of each query."""
    queries = table[table["shows"] == "queries"]
    shown = [rows_of(queries, each.model, ["image"]) for each in members]
    images = max(rows["image"].nunique() for rows in shown)
    columns = 1 + max(rows.groupby("image").size().max() for rows in shown)
    groups = groups_of_panels(len(members), images, columns)
    scales = [scale_of(rows) for rows in shown]
    for rows, grid, scale in zip(shown, groups.grids, scales, strict=True):
        for (_, image), line in zip(rows.groupby("image", sort=False), grid, strict=False):
            _draw_queries(image, line, scale, groups.side)
    label(groups, members, shown, scales, lambda row: f", head {row['head']}")
    return groups.figure


def _draw_queries(queries: pd.DataFrame, line: Array, scale: Normalize, side: float) -> None:
    """Draw an image, and a map of each query in it."""
    pixels = read_picture(queries["picture"].iloc[0])
    draw_picture(line[0], pixels)
    for number, (_, query) in enumerate(queries.iterrows()):
        color, axes = QUERY_COLORS[number % len(QUERY_COLORS)], line[1 + number]
        draw_weights(axes, query, scale, pixels.shape[:2], side)
        for each in (line[0], axes):
            each.plot(query["query_column"] - 0.5, query["query_row"] - 0.5, color=color, **CROSS)


# One scale for all: each rollout is over its largest value.
_SCALE = Normalize(0, 1)


def plot_attention_rollout(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw for each model a row for each image: image, rollout, and both."""
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    rows = max(map(len, shown))
    groups = groups_of_panels(len(members), rows, 3)
    for images, grid in zip(shown, groups.grids, strict=True):
        for (_, image), (left, middle, right) in zip(images.iterrows(), grid, strict=False):
            pixels = read_picture(image["picture"])
            place = (image["height"], image["width"])
            draw_picture(left, pixels)
            for axes, over in ((middle, None), (right, pixels)):
                draw_map(axes, image["rollout"], place, _SCALE, pixels.shape[:2], over)
    titles = [
        f"{member.label} ({of['of'].iloc[0]})" for member, of in zip(members, shown, strict=True)
    ]
    groups.titles(titles)
    groups.bars([_SCALE] * len(members), "Rollout")
    return groups.figure
