from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from vitscope.claims.points import AllPublished
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.charts import AlongX, Chart, Curve, Layer, PublishedPoints, Rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.looks import (
    CROSS,
    CURVE,
    GRAY,
    HEAD,
    HEAD_ALPHA,
    QUERY_COLORS,
    REFERENCE,
    text_scale,
)
from vitscope.drawing.panels import page_width
from vitscope.drawing.pictures import (
    brightest_attention,
    draw_map,
    draw_picture,
    draw_product,
    groups_of_pictures,
    name_picture,
    read_picture,
)
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array

_MEANS = {"head": pd.isna}


def chart_by_head(value: str, label: str, *more: Layer, mean: str = "mean of heads") -> Chart:
    """Return a chart of `value` for each head, and of its mean over heads with an interval."""
    heads = Curve(
        value,
        "head",
        {"head": pd.notna},
        lambda look: {**HEAD, "color": look.color, "alpha": HEAD_ALPHA, "zorder": 2},
        interval="",
        in_legend={**HEAD, "color": GRAY},
    )
    means = Curve(value, mean, _MEANS, interval=value)
    layers, where = (heads, means, *more), {value: pd.notna}
    rows = Rows(label, *layers, where=where, scale=begin_at_zero, scales="shared")
    return Chart(rows, across=AlongX(order=("attention", "head")), bands=False)


def _reference_curve(column: str, label: str = "attending to all alike") -> Curve:
    style = REFERENCE | {"zorder": 1, "clip_on": True}
    return Curve(column, label, _MEANS, style, interval="")


def _depths_of_published_blocks(theirs: pd.DataFrame, rows: pd.DataFrame) -> pd.Series:
    """Return the depth of each published block: the depth of the attention with the same index.

    In a panel of their own, each block is an attention and an MLP, as in a ViT.
    """
    if "attention" not in rows:
        depths: pd.Series = (theirs["block"] + 0.5) / (theirs["block"].max() + 1)
        return depths
    return theirs["block"].map(rows.drop_duplicates("attention").set_index("attention")["depth"])


plot_attention_nmi = chart_by_head(
    "nmi",
    "Normalized mutual\ninformation",
    PublishedPoints("attention_nmi", "mean of heads", _depths_of_published_blocks),
)
plot_attention_low_pass = chart_by_head(
    "let_through",
    "High frequencies let\nthrough (output / values)",
    _reference_curve("bound", "bound, mean of heads"),
)


def plot_attention_entropy(table: pd.DataFrame, members: Members) -> Figure:
    """Draw the entropy of each head, and the largest possible entropy (of uniform attention)."""
    chart = chart_by_head("entropy", "Entropy (nats)", _reference_curve("largest"))
    return chart(table.assign(largest=np.log(table["keys"])), members=members)


_DISTANCE = "Attention distance\n(pixels)"
_RENORMALIZED = chart_by_head(
    "distance_renormalized",
    _DISTANCE,
    _reference_curve("distance_uniform"),
    PublishedPoints("attention_distance_px", "mean of heads", _depths_of_published_blocks),
    mean="mean of heads, renormalized",
)
_AS_IT_IS = chart_by_head("distance", _DISTANCE, mean="mean of heads, not renormalized")


def plot_attention_distance(
    table: pd.DataFrame,
    members: Members,
    published: AllPublished | None = None,
    *,
    renormalized: bool = True,
) -> Figure:
    """Draw how far each head looks, with or without renormalizing over keys with a place."""
    if published and not renormalized:
        raise VitscopeError(
            "Published distances are renormalized: leave `published` out of the figure, or "
            "`renormalized: false`."
        )
    chart = _RENORMALIZED if renormalized else _AS_IT_IS
    return chart(table, members=members, published=published)


@dataclass(frozen=True)
class Manner:
    """How maps are drawn: over the image or alone, each on a scale of its own or all on one."""

    scale: Normalize
    over: bool
    own_scales: bool


# Draw each position as this many cells down and across, so that a contour follows its edges.
_FINE = 8


def draw_weights(
    axes: Axes, row: pd.Series, manner: Manner, pixels: npt.NDArray[np.uint8], side: float
) -> None:
    """Draw the attention of a query to each key; if `mass` is set, outline that share of it.

    `side` is the side of the panel in inches.
    """
    weights, size = np.asarray(row["weights"]), pixels.shape[:2]
    grid = (row["height"], row["width"])
    shown = weights / weights.max() if manner.own_scales else 100 * weights
    draw_map(axes, shown, grid, manner.scale, size, pixels if manner.over else None)
    if pd.notna(row["mass"]):
        _outline_brightest_attention(
            axes, brightest_attention(weights, row["mass"]).reshape(grid), size, side
        )


def _outline_brightest_attention(
    axes: Axes, mask: Array, size: tuple[int, int], side: float
) -> None:
    large = np.pad(np.kron(mask, np.ones((_FINE, _FINE))), 1)
    down, across = (
        (np.arange(-1, cells * _FINE + 1) + 0.5) * pixels / (cells * _FINE) - 0.5
        for pixels, cells in zip(size, mask.shape, strict=True)
    )
    # Draw a thinner line in a panel smaller than an inch.
    width = CURVE * min(1, side)
    axes.contour(across, down, large, [0.5], colors="white", linewidths=width)


_LEAST_SIDE_OF_MAP = 0.6  # inches
_MAPS_OF_LINE = 8  # how many maps a line of a narrow page has, which may be smaller


def plot_attention_maps(
    table: pd.DataFrame,
    members: Members,
    *,
    shows: str,
    over: bool = False,
    own_scales: bool = False,
) -> Figure:
    """Draw the images of each model, and beside each image its maps, of heads or of queries.

    The maps of all heads take one line or more, those of queries one.
    """
    table, of_heads = table[table["shows"] == shows], shows == "heads"
    shown = [rows_of(table, each.model, ["image", "head"]) for each in members]
    counts = [int(rows.groupby("image").size().max()) for rows in shown]
    wide = max(_MAPS_OF_LINE / text_scale(), page_width() / _LEAST_SIDE_OF_MAP - 1)
    most = int(wide) if of_heads else max(counts)
    lines = [ceil(count / most) for count in counts]
    shapes = [
        (rows["image"].nunique() * down, 1 + ceil(count / down))
        for rows, count, down in zip(shown, counts, lines, strict=True)
    ]
    groups = groups_of_pictures(shapes, int(of_heads) + int(table["class_name"].notna().any()))
    largest = [1.0 if own_scales else 100 * max(map(max, rows["weights"])) for rows in shown]
    manners = [Manner(Normalize(0, float(each)), over, own_scales) for each in largest]
    titles = []
    for member, rows, grid, down, manner in zip(
        members, shown, groups.grids, lines, manners, strict=True
    ):
        unused = {*grid.ravel()}
        for number, (_, image) in enumerate(rows.groupby("image")):
            unused -= _draw_image_with_attention(
                image, grid[number * down :][:down], manner, groups.side
            )
        if of_heads:
            for axes in unused:
                axes.remove()
        first = rows.iloc[0]
        which = f" ({first['of']})" if of_heads else f", head {first['head']}"
        titles.append(f"{member.label}: {first['name']}{which}")
    groups.titles(titles)
    said = ("Attention over its largest", "") if own_scales else ("Attention", " %")
    groups.bars([manner.scale for manner in manners], *said)
    return groups.figure


def _draw_image_with_attention(
    maps: pd.DataFrame, grid: Array, manner: Manner, side: float
) -> set[Axes]:
    """Draw an image and its maps, of heads or of queries; return the panels used."""
    of_heads, picture = maps["shows"].iloc[0] == "heads", grid[0, 0]
    pixels = read_picture(maps["picture"].iloc[0])
    draw_picture(picture, pixels)
    wide = side * (2 if of_heads else grid.shape[1])
    name_picture(picture, maps.iloc[0], side if of_heads else wide, wide)
    if of_heads and (maps["of"] == "query").all():
        _mark_query(picture, maps.iloc[0], "white")
    panels = grid[:, 1:].ravel()[: len(maps)]
    for number, ((_, row), axes) in enumerate(zip(maps.iterrows(), panels, strict=True)):
        draw_weights(axes, row, manner, pixels, side)
        if of_heads:
            axes.set_title(f"head {row['head']}", fontsize="small", pad=2)
        else:
            for each in (picture, axes):
                _mark_query(each, row, QUERY_COLORS[number % len(QUERY_COLORS)])
    return {picture, *panels}


def _mark_query(axes: Axes, row: pd.Series, color: str) -> None:
    axes.plot(row["query_column"] - 0.5, row["query_row"] - 0.5, color=color, **CROSS)


# All rollouts share a scale: each is divided by its largest value, or by a lower value if clipped.
_SCALE = Normalize(0, 1)
# The share of positions, the highest ones, that get full brightness.
_CLIP = 0.02


def clip_rollout(rollout: npt.ArrayLike, clip: float) -> Array:
    """Divide a rollout by the value that a share `clip` of positions exceeds, and limit it to 1."""
    values = np.asarray(rollout, np.float64)
    top = float(np.quantile(values, 1 - clip)) or values.max() or 1.0
    return np.minimum(values / top, 1)


_OVER = ("overlay", "product")
_SHARES = {"on_subject": "on mask", "subject": "of area"}


def _draw_uncropped(axes: Axes, pixels: npt.NDArray[np.uint8], size: tuple[int, int]) -> None:
    """Draw the image before cropping, pale except for the middle of `size` pixels that was kept."""
    top, left = (round((whole - cut) / 2) for whole, cut in zip(pixels.shape, size, strict=False))
    middle = np.s_[top : top + size[0], left : left + size[1]]
    shown = 170 + pixels // 3
    shown[middle] = pixels[middle]
    draw_picture(axes, shown)


def plot_attention_rollout(
    table: pd.DataFrame, members: Members, *, product: bool = False, clip: float = _CLIP
) -> Figure:
    """Draw for each model a row for each image: the image, its rollout, and both combined."""
    shown = [rows_of(table, each.model, ["image"]) for each in members]
    rows = max(map(len, shown))
    cut, masked = (int(table[each].notna().any()) for each in ("whole", "on_subject"))
    # The titles of columns are one line more.
    text = masked + (masked or int(table["class_name"].notna().any())) + 1 / rows
    groups = groups_of_pictures([(rows, cut + 3)] * len(members), text, one_scale=True)
    for images, grid in zip(shown, groups.grids, strict=True):
        for (_, image), panels in zip(images.iterrows(), grid, strict=False):
            left, middle, right = panels[cut:]
            pixels = read_picture(image["picture"])
            place = (image["height"], image["width"])
            if cut and pd.notna(image["whole"]):
                _draw_uncropped(panels[0], read_picture(image["whole"]), pixels.shape[:2])
            draw_picture(left, pixels)
            first = image.name == images.index[0]
            wide = groups.side * (1 if first and masked else 2)
            name_picture(left, image, groups.side if first or masked else wide, wide)
            values = clip_rollout(image["rollout"], clip)
            draw_map(middle, values, place, _SCALE, pixels.shape[:2])
            if product:
                draw_product(right, values, place, pixels)
            else:
                draw_map(right, values, place, _SCALE, pixels.shape[:2], pixels)
            heads = {"on_subject": "rollout", "subject": _OVER[product]}
            for axes, (share, head) in zip((middle, right), heads.items(), strict=True):
                said = [head] * first
                if pd.notna(image[share]):
                    said += [_SHARES[share]] * first + [f"{100 * image[share]:.0f} %"]
                axes.set_title("\n".join(said), fontsize="small", pad=2)
        if cut:
            grid[0, 0].set_title("whole", fontsize="small", pad=2)
    firsts = [images.iloc[0] for images in shown]
    groups.titles(
        [
            f"{member.label} ({first['of']}; heads: {first['fusion']})"
            for member, first in zip(members, firsts, strict=True)
        ]
    )
    top = f"{100 - 100 * clip:g} % quantile" if clip else "largest value"
    groups.bar(_SCALE, f"Rollout, over its {top}")
    return groups.figure
