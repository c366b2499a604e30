from collections.abc import Callable
from math import ceil

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.claim import Claim, Evidence, every_model
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, exactly, rank_correlation
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import percent
from vitscope.drawing.panels import columns_of, width_of
from vitscope.files.arrays import Array

# Pixels of a picture: of a tile at least, and of the gap between two.
_TILE, _GAP = 48, 6
# Inches: what a line of the title of a panel takes of the height, and what is around all.
_LINE, _AROUND = 0.13, 0.16
# The space between two panels, as a share of their width.
_SPACE = 0.05


def pictures(rows: pd.DataFrame) -> Array:
    """Return the filters in rows of the table as pictures of red, green and blue: (N, H, W, 3)."""
    if rows.empty:
        return np.ones((1, 1, 1, 3))
    first = rows.iloc[0]
    shape = (len(rows), first["height"], first["width"], first["channels"])
    values = np.stack([np.asarray(each, np.float64) for each in rows["values"]]).reshape(shape)
    return np.broadcast_to(values, (*shape[:3], 3))


def tiled(tiles: Array, columns: int) -> Array:
    """Return pictures (N, H, W, 3) side by side, in so many columns, each pixel a square."""
    larger = max(1, ceil(_TILE / max(tiles.shape[1:3])))
    tiles = tiles.repeat(larger, axis=1).repeat(larger, axis=2)
    height, width = tiles.shape[1] + _GAP, tiles.shape[2] + _GAP
    rows = ceil(len(tiles) / columns)
    page = np.ones((rows * height - _GAP, columns * width - _GAP, 3))
    for number, tile in enumerate(tiles):
        row, column = divmod(number, columns)
        top, left = row * height, column * width
        page[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return page


def draw_tiles(
    table: pd.DataFrame, members: Members, of: str, title: Callable[[Member, pd.DataFrame], str]
) -> Figure:
    """Draw one panel per model, with all its filters or components, and their title."""
    shown = table[table["of"] == of]
    filters = [rows_of(shown, member.model, ["number"]) for member in members]
    titles = [title(*each) for each in zip(members, filters, strict=True)]
    count = len(members)
    across, width = columns_of(count), width_of(count)
    down = ceil(count / across)
    pages = [tiled(each, _columns(len(each))) for each in map(pictures, filters)]
    highest = [
        max(page.shape[0] / page.shape[1] for page in pages[first : first + across])
        for first in range(0, count, across)
    ]
    lines = 1 + max(text.count("\n") for text in titles)
    height = sum(width / across * each + _LINE * lines + _AROUND for each in highest)
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", wspace=_SPACE)
    grid = figure.subplots(down, across, squeeze=False, height_ratios=highest)
    for axes, page, text in zip(grid.ravel(), pages, titles, strict=False):
        axes.imshow(page, interpolation="nearest", vmin=0, vmax=1)
        axes.set(title=text, xticks=[], yticks=[], anchor="N")
        axes.spines[:].set_visible(False)
    for unused in grid.ravel()[count:]:
        unused.remove()
    return figure


def _columns(count: int) -> int:
    """Return in how many columns so many tiles fill rows, twice as wide as high if they can."""
    wanted = (2 * count) ** 0.5
    some = range(ceil(count**0.5), ceil((3 * count) ** 0.5) + 1)
    return min(some, key=lambda columns: (-count % columns, abs(columns - wanted)))


def _title_of_filters(member: Member, rows: pd.DataFrame) -> str:
    first, shown = rows.iloc[0], len(rows)
    of = f"first {shown} of {first['count']}" if shown < first["count"] else f"{shown}"
    return f"{member.label}\n{of} filters of {first['height']}×{first['width']} pixels"


def plot_patch_filters(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one panel per model: its filters, each from its lowest value to its highest."""
    return draw_tiles(table, members, "filter", _title_of_filters)


def _title_of_components(member: Member, rows: pd.DataFrame) -> str:
    if rows.empty:
        return f"{member.label}\nfilters that do not differ"
    count, shown = rows["count"].iloc[0], len(rows)
    if shown == count:
        return f"{member.label}\nall {count} components"
    share = percent(rows["share"].sum(), ".1f")
    return f"{member.label}\nfirst {shown} of {count}:\n{share} of the variance"


def plot_patch_components(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one panel per model: the principal components of its filters, the first ones first."""
    return draw_tiles(table, members, "component", _title_of_components)


_LEAST_SIDE, _LEAST_COMPONENTS = 3, 4


def _follow_number(points: Points) -> Found | None:
    known = points.known("frequency")
    side = known.frame[["height", "width"]].to_numpy().min(initial=_LEAST_SIDE)
    if len(known) < _LEAST_COMPONENTS or side < _LEAST_SIDE:
        return None
    return exactly(rank_correlation(known["number"], known["frequency"]))


CLAIMS_PATCH_COMPONENTS = Evidence(
    "patch_filters",
    (
        Claim(
            "first_components_are_smooth",
            "The first principal components of filters are smoother than later ones",
            "Dosovitskiy et al. 2021",
            every_model,
            Statistic(
                "rank correlation of number and frequency",
                "The value is the rank correlation (Spearman) of the number of a component and "
                "its mean frequency, over the components that are shown. Filters narrower than "
                "three pixels have too few frequencies, and no such claim.",
                _follow_number,
            ),
            "Not in the paper: Dosovitskiy et al. 2021 (Fig. 7, left) say that the principal "
            "components of the filters of a ViT resemble plausible basis functions of patches, "
            "with smooth ones first, as in a cosine transform.",
        ),
    ),
    lambda rows, _: rows[rows["of"] == "component"].sort_values("number", ignore_index=True),
)
