from math import ceil

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import color_bar
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import percent
from vitscope.drawing.looks import GRAY, POSITION_COLORS, SIGNED_COLORS, text_scale
from vitscope.drawing.panels import (
    LEAST_SQUARE,
    columns_of,
    make_square_panels,
    page_width,
    width_of,
)
from vitscope.files.arrays import Array

_TILE_PIXELS = 48  # the minimum side of a tile
_GAP_PIXELS = 6  # the gap between two tiles
_LINE = 0.13  # inches: a line of a panel's title
_MARGIN = 0.16  # inches: above and below a row of panels
# The space between two panels, as a share of their width.
_SPACE = 0.05


def filter_pictures(rows: pd.DataFrame) -> Array:
    """Return the filters in rows of the table as pictures (N, H, W, 3) in red, green and blue."""
    if rows.empty:
        return np.ones((1, 1, 1, 3))
    first = rows.iloc[0]
    shape = (len(rows), first["height"], first["width"], first["channels"])
    values = np.stack([np.asarray(each, np.float64) for each in rows["values"]]).reshape(shape)
    return np.broadcast_to(values, (*shape[:3], 3))


def tile_filter_pictures(tiles: Array, columns: int) -> Array:
    """Arrange the pictures `tiles` (N, H, W, 3) on a page; each pixel becomes a square."""
    larger = max(1, ceil(_TILE_PIXELS / max(tiles.shape[1:3])))
    tiles = tiles.repeat(larger, axis=1).repeat(larger, axis=2)
    height, width = tiles.shape[1] + _GAP_PIXELS, tiles.shape[2] + _GAP_PIXELS
    rows = ceil(len(tiles) / columns)
    page = np.ones((rows * height - _GAP_PIXELS, columns * width - _GAP_PIXELS, 3))
    for number, tile in enumerate(tiles):
        row, column = divmod(number, columns)
        top, left = row * height, column * width
        page[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return page


def plot_filter_tiles(table: pd.DataFrame, members: Members, *, of: str) -> Figure:
    """Draw one panel per model: its filters, or their principal components in order.

    Each is drawn from its lowest value to its highest.
    """
    title = _title_of_filters if of == "filter" else _title_of_patch_components
    shown = table[table["of"] == of]
    filters = [rows_of(shown, member.model, ["number"]) for member in members]
    titles = [title(*each) for each in zip(members, filters, strict=True)]
    count = len(members)
    across, width = columns_of(count), width_of(count)
    down = ceil(count / across)
    pages = [
        tile_filter_pictures(each, _columns_of_tiles(len(each)))
        for each in map(filter_pictures, filters)
    ]
    highest = [
        max(page.shape[0] / page.shape[1] for page in pages[first : first + across])
        for first in range(0, count, across)
    ]
    lines = 1 + max(text.count("\n") for text in titles)
    height = sum(width / across * each + _LINE * lines + _MARGIN for each in highest)
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


def _columns_of_tiles(count: int) -> int:
    """Return the number of columns, about twice that of rows, that leaves the fewest gaps."""
    wanted = (2 * count) ** 0.5
    some = range(ceil(count**0.5), ceil((3 * count) ** 0.5) + 1)
    return min(some, key=lambda columns: (-count % columns, abs(columns - wanted)))


def _title_of_filters(member: Member, rows: pd.DataFrame) -> str:
    first, shown = rows.iloc[0], len(rows)
    of = f"first {shown} of {first['count']}" if shown < first["count"] else f"{shown}"
    return f"{member.label}\n{of} filters of {first['height']}×{first['width']} pixels"


def _title_of_patch_components(member: Member, rows: pd.DataFrame) -> str:
    if rows.empty:
        return f"{member.label}\nfilters that do not differ"
    count, shown = rows["count"].iloc[0], len(rows)
    if shown == count:
        return f"{member.label}\nall {count} components"
    share = percent(rows["share"].sum(), ".1f")
    return f"{member.label}\nfirst {shown} of {count}:\n{share} of the variance"


# The maximum number of tiles along a side; of more positions, evenly spaced ones are drawn.
_MOST = 14
_GAP = 0.12  # the gap between two tiles, as a share of their side
_MOST_LABELS = 8  # the maximum number of labels along a side
_BAR_OF_ALL = 1.15  # inches: the width of a colour bar for all panels
_BAR_AND_LABELS = 0.95  # inches: the width of a colour bar and the labels of one panel
_TITLE_HEIGHT = 0.25  # inches: the height of titles and labels


def positions_with_tiles(size: int) -> Array:
    """Return the indices of the rows or columns, out of `size`, that have tiles."""
    return np.linspace(0, size - 1, min(size, _MOST)).round().astype(int)


def _draw_position_similarity(axes: Axes, points: pd.DataFrame) -> None:
    height, width = (int(points[name].iloc[0]) for name in ("height", "width"))
    cosines = np.stack([np.asarray(each, np.float64) for each in points["cosines"]])
    tiles = cosines.reshape(height, width, height, width)
    rows, columns = positions_with_tiles(height), positions_with_tiles(width)
    for down, row in enumerate(rows):
        for right, column in enumerate(columns):
            # A tile with its gap is one unit wide.
            edges = (right, right + 1 - _GAP, down + 1 - _GAP, down)
            axes.imshow(tiles[row, column], cmap=POSITION_COLORS, vmin=-1, vmax=1, extent=edges)
    for axis, numbers in ((axes.xaxis, columns), (axes.yaxis, rows)):
        every = -(-len(numbers) // _MOST_LABELS)
        middles = np.arange(len(numbers))[::every] + (1 - _GAP) / 2
        axis.set_ticks(middles, [str(number) for number in numbers[::every]])
    axes.set(xlim=(0, len(columns) - _GAP), ylim=(len(rows) - _GAP, 0), aspect="equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def plot_position_similarity(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a panel per model, with a tile for each position: its cosine with all others."""
    panels = make_square_panels(len(members), _BAR_OF_ALL, _TITLE_HEIGHT)
    for panel in panels.of_models(members, table, ["row", "column"]):
        _draw_position_similarity(panel.axes, panel.rows)
    colors = ScalarMappable(Normalize(-1, 1), POSITION_COLORS)
    color_bar(panels.axes, colors, "Cosine similarity")
    return panels.finish("Column of the position", "Row of the position")


def plot_position_products(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a panel per model: the dot products of all pairs of positions, on a scale of its own."""
    across = columns_of(len(members), LEAST_SQUARE)
    panels = make_square_panels(len(members), across * _BAR_AND_LABELS, _TITLE_HEIGHT)
    for panel in panels.of_models(members, table, ["row", "column"]):
        products = np.stack([np.asarray(each, np.float64) for each in panel.rows["products"]])
        largest = float(np.abs(products).max()) or 1.0
        scale = TwoSlopeNorm(0, -largest, largest)
        cells = panel.axes.imshow(products, cmap=SIGNED_COLORS, norm=scale, interpolation="nearest")
        panel.axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        options = {"shrink": 0.9, "ticks": MaxNLocator(4)}
        color_bar([panel.axes], cells, "Dot product", labelpad=4, **options)
    return panels.finish("Position, row by row", "Position, row by row")


_TILE = 0.5  # inches: the largest side of a tile
_LEAST_NAMED = 0.17  # inches: the least side of a tile with its first and last head above it
_BAR_WIDTH = 1.3  # inches: the width of a colour bar with its labels, and of the panel's labels
_TEXT_HEIGHT = 0.55  # inches: title and labels of a panel
_BAR = 0.1  # inches: the width of a colour bar
_LEAST_BAR = 0.4  # inches: the minimum height of a colour bar
_BETWEEN = 0.25  # the gap between two layers, as a share of a tile's side
_FILLED = 0.75  # the minimum share of a panel that tiles fill


class _TilePlaces:
    """The places of a model's tiles, in units of tiles: layers across, and heads down.

    If a layer has many heads, they fill several columns.
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        # If all heads share a bias, `head` is null: draw the bias as that of one head, number 0.
        self.heads, self.layers = rows["head"].fillna(0).to_numpy(int), rows["layer"].to_numpy(int)
        of_layers = 1 + rows.assign(head=self.heads).groupby("layer")["head"].max().to_numpy()
        columns = {down: -(-of_layers // down) for down in {*of_layers.tolist()}}
        filled = {d: of_layers.sum() / (d * each.sum()) for d, each in columns.items()}
        # Take the tallest panel that tiles fill well enough: later stages may have many more heads.
        enough = min(_FILLED, max(filled.values()))
        self.down = max(down for down, share in filled.items() if share >= enough)
        self.columns = columns[self.down]
        self.starts = np.cumsum(self.columns + _BETWEEN) - self.columns - _BETWEEN
        self.width = float(self.starts[-1] + self.columns[-1])
        self.left = self.starts[self.layers] + self.heads // self.down
        self.top = self.heads % self.down


def _draw_biases(
    axes: Axes, rows: pd.DataFrame, places: _TilePlaces, scale: TwoSlopeNorm, tile: float
) -> None:
    for row, left, top in zip(rows.to_dict("records"), places.left, places.top, strict=True):
        values = np.reshape(row["values"], (row["height"], row["width"]))
        edges = (left, left + 1 - _GAP, top + 1 - _GAP, top)
        axes.imshow(values, cmap=SIGNED_COLORS, norm=scale, extent=edges, interpolation="nearest")
    middles = places.starts + (places.columns - _GAP) / 2
    axes.set_xticks(middles, [str(number) for number in range(len(middles))])
    names = ["all"] if rows["head"].isna().all() else [str(n) for n in range(places.down)]
    axes.set_yticks(np.arange(len(names)) + (1 - _GAP) / 2, names)
    for start, columns in zip(places.starts, places.columns, strict=True):
        for column in range(columns if columns > 1 else 0):
            at, first = (start + column + (1 - _GAP) / 2, -_GAP), column * places.down
            last = f"\N{EN DASH}{first + places.down - 1}" if tile >= _LEAST_NAMED else ""
            axes.text(*at, f"{first}{last}", ha="center", fontsize="x-small", color=GRAY)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def plot_position_bias(table: pd.DataFrame, members: Members) -> Figure:
    """Draw one panel per model, each with its own scale: layers across and heads down."""
    rows = [rows_of(table, member.model, ["layer", "head"]) for member in members]
    places = [_TilePlaces(each) for each in rows]
    width = max(each.width for each in places)
    tile = min(_TILE, (page_width() - _BAR_WIDTH * text_scale()) / width)
    heights = [max(_LEAST_BAR * text_scale() / tile, each.down) for each in places]
    text = _TEXT_HEIGHT * text_scale()
    size = tile * width + _BAR_WIDTH * text_scale(), tile * sum(heights) + text * len(members)
    figure = Figure(figsize=size)
    grid = figure.subplots(len(members), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, each, at, member, high in zip(grid, rows, places, members, heights, strict=True):
        largest = float(each[["lowest", "highest"]].abs().to_numpy().max()) or 1.0
        scale = TwoSlopeNorm(0, -largest, largest)
        _draw_biases(axes, each, at, scale, tile / text_scale())
        # Make all panels as wide as the widest, so that all tiles have one size.
        axes.set(xlim=(0, width - _GAP), ylim=(high - _GAP, 0), aspect="equal", anchor="W")
        axes.set_title(member.label, loc="left", pad=10)
        axes.set_ylabel("Head")
        axes.set_xlabel("Layer with a bias", x=(at.width - _GAP) / (width - _GAP) / 2)
        beside = (at.width + _BETWEEN, 0, _BAR / tile, high - _GAP)
        bar = axes.inset_axes(beside, transform=axes.transData)
        colors, ticks = ScalarMappable(scale, SIGNED_COLORS), MaxNLocator(5 if high > 2 else 3)
        color_bar([axes], colors, "", cax=bar, ticks=ticks)
        bar.set_title("Bias of the logit", loc="left", fontsize="small")
    return figure
