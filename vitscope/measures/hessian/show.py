from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.scale import SymmetricalLogTransform
from matplotlib.ticker import (
    FixedLocator,
    LogFormatterMathtext,
    MaxNLocator,
    NullFormatter,
    SymmetricalLogLocator,
)

from vitscope.claims.points import AllPublished, Published
from vitscope.drawing.axes import draw_points_with_intervals
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import INTERVAL, Legend, minus, moment, percent, published_label
from vitscope.drawing.looks import (
    DASHED,
    DOTTED,
    EVERY_SECOND,
    FOOT_MARK,
    GRAY,
    HAIR,
    HEAD,
    HEAD_ALPHA,
    INTERVAL_WIDTH,
    RANGE_ALPHA,
    ZERO,
    look_of,
    looks_of,
    text_scale,
)
from vitscope.drawing.panels import Panel, make_row_panels, page_width, stack_panels
from vitscope.files.arrays import Array
from vitscope.measures.per_image import spread

Range = tuple[float, float]

# In decades: the kernel that smooths a density, and how far an axis reaches beyond eigenvalues.
KERNEL = 0.1
_REACH = 3 * KERNEL
_POINTS = 400

_SIGNS = {"negative": -1, "positive": 1}
_WIDTHS = (1.0, 1.35)
# Inches: the height of a moment's title and labels, of each model in it, and of the legend.
_PART_HEIGHT, _MODEL_HEIGHT, _LEGEND_HEIGHT = 0.5, 0.68, 0.2
# Letters of a label in an inch of the page, with two panels side by side.
_LETTERS = 7
# Magnitudes between these are written out, not as powers of ten.
_PLAIN = (0.01, 10_000)

# An axis may leave out the parts of a published curve below this share of its peak.
_NEGLIGIBLE_SHARE = 0.02
# The height of the marks, as a share of the panel.
_FOOT = 0.06


def density_per_decade(eigenvalues: Array, at: Array) -> Array:
    """Return the density of eigenvalues per decade at values of one sign; both add up to 1."""
    same = eigenvalues[np.sign(eigenvalues) == np.sign(at[0])]
    off = (np.log10(np.abs(at))[:, None] - np.log10(np.abs(same))) / KERNEL
    kernels = np.exp(-np.square(off) / 2) / (np.sqrt(2 * np.pi) * KERNEL)
    density: Array = kernels.sum(axis=1) / len(eigenvalues)
    return density


def published_per_decade(points: pd.DataFrame) -> tuple[Array, Array]:
    """Return published eigenvalues and their density per decade, like ours."""
    at = points["eigenvalue"].to_numpy()
    return at, points["density"].to_numpy() * np.abs(at) * np.log(10)


def _curve_of(published: Published, panel: str) -> tuple[Array, Array]:
    """Return the published density of one sign per decade."""
    points = published.points
    points = points[points["panel"] == panel]
    return published_per_decade(points[np.sign(points["eigenvalue"]) == _SIGNS[panel]])


def _range(table: pd.DataFrame, published: AllPublished, panel: str) -> Range | None:
    """Return the magnitudes at both ends of an axis, or None if it has nothing to show."""
    values = table["eigenvalue"].to_numpy()
    reached = [values[np.sign(values) == _SIGNS[panel]]]
    for curve in published.values():
        at, density = _curve_of(curve, panel)
        reached.append(at[density > _NEGLIGIBLE_SHARE * density.max(initial=0)])
    shown = np.abs(np.concatenate(reached))
    if not shown.size:
        return None
    margin = 10**_REACH
    return float(shown.min() / margin), float(shown.max() * margin)


def _labelled(low: float, high: float) -> list[float]:
    """Return the powers of ten in a range and, if these are few, also three times them."""
    powers = [10.0**decade for decade in range(floor(log10(low)), floor(log10(high)) + 1)]
    between = [times * power for power in powers for times in (1, 3)]
    inside = [[each for each in values if low <= each <= high] for values in (powers, between)]
    return inside[0] if len(inside[0]) > 2 else inside[1]


def _say_none(axes: Axes) -> None:
    axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center")


def _prepare(axes: Axes, panel: str, reach: Range | None) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(nbins=2, steps=[1, 2, 5, 10]))
    if reach is None:
        axes.set(xticks=[])
        _say_none(axes)
        return
    (low, high), sign = reach, _SIGNS[panel]
    if sign > 0:
        axes.set_xscale("log")
        axes.set_xlim(low, high)
    else:
        # Logarithmic, except nearer to zero than any eigenvalue, where nothing is drawn.
        axes.set_xscale("symlog", linthresh=low / 10, subs=range(2, 10))
        axes.set_xlim(-high, -low)
    shown = _labelled(low, high)
    axes.xaxis.set_major_locator(FixedLocator(sorted(sign * each for each in shown)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if _PLAIN[0] <= min(shown) and max(shown) <= _PLAIN[1]:
        axes.xaxis.set_major_formatter(lambda value, _: minus(f"{value:g}"))
    else:
        axes.xaxis.set_major_formatter(LogFormatterMathtext())


def _draw_model(
    pair: Sequence[Axes],
    member: Member,
    rows: pd.DataFrame,
    theirs: Published | None,
    ranges: Mapping[str, Range | None],
) -> None:
    values, color = rows["eigenvalue"].to_numpy(), look_of(member).color
    failed = int((~rows["converged"]).sum())
    doubt = f" ({failed} of {len(rows)} not converged)" if failed else ""
    title = f"{member.label}: {percent((values < 0).mean())} negative{doubt}"
    pair[0].set_title(title, loc="left", fontsize="medium", pad=2)
    for axes, (panel, reach) in zip(pair, ranges.items(), strict=True):
        _prepare(axes, panel, reach)
        if reach is None:
            continue
        at = _SIGNS[panel] * np.geomspace(*reach, _POINTS)
        density = density_per_decade(values, at)
        axes.plot(at, density, color=color, zorder=3)
        axes.fill_between(at, density, color=color, alpha=RANGE_ALPHA, lw=0)
        same = values[np.sign(values) == _SIGNS[panel]]
        foot = {**FOOT_MARK, "color": color, "transform": axes.get_xaxis_transform()}
        axes.plot(same, np.full(len(same), _FOOT), **foot, zorder=4)
        if not len(same):
            _say_none(axes)
        if theirs:
            axes.plot(*_curve_of(theirs, panel), color=color, **DOTTED, zorder=2.5)


def plot_hessian(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw a row per snapshot and model: the densities of negative and positive eigenvalues."""
    snapshots = table["snapshot"].unique()
    shown = table[table["model"].isin([member.model for member in members])]
    ranges = {panel: _range(shown, published, panel) for panel in _SIGNS}
    height = (_PART_HEIGHT + _MODEL_HEIGHT * len(members)) * text_scale()
    below = _LEGEND_HEIGHT * bool(published)
    figure = Figure(figsize=(page_width(), height * len(snapshots) + below))
    parts = figure.subfigures(len(snapshots), 1, squeeze=False)[:, 0]
    drawn = []
    for part, snapshot in zip(parts, snapshots, strict=True):
        part.suptitle(moment(snapshot))
        part.supylabel("Density per decade")
        grid = part.subplots(
            len(members), 2, sharex="col", sharey=True, squeeze=False, width_ratios=_WIDTHS
        )
        for pair, member in zip(grid, members, strict=True):
            rows = rows_of(table, member.model, snapshot=snapshot)
            _draw_model(pair, member, rows, published.get(member.model), ranges)
        drawn += grid.ravel().tolist()
    for axes, panel in zip(drawn[-2:], ranges, strict=True):
        label = f"Hessian max eigenvalue ({panel})"
        axes.set_xlabel(fill(label, int(_LETTERS * page_width() / text_scale())))
    highest = max(axes.dataLim.y1 for axes in drawn)
    for axes in drawn:
        axes.set_ylim(0, 1.05 * highest)
    if published:
        legend = Legend()
        legend.add_line("measured", {"color": GRAY})
        named = published_label(published.values(), axis="same scale")
        legend.add_line(named, {"color": GRAY, **DOTTED})
        legend.draw(parts[-1])
    return figure


# The width of a bar of the density: in decades, on the logarithmic part of the axis.
_BAR = 0.1
# How far the axis of the density reaches below the smallest share and above the largest.
_BELOW, _ABOVE = 0.5, 3


def shares_of_bars(nodes: Array, weights: Array) -> tuple[Array, Array, float]:
    """Return the share of all eigenvalues in each bar, where bars end, where the axis is linear."""
    linear = _linear_below(pd.Series(nodes))
    scale = SymmetricalLogTransform(10, linear, 1)
    lowest, highest = nodes.min(), nodes.max()
    low, high = scale.transform(np.array([lowest, highest]))
    count = max(1, ceil((high - low) / (_BAR * linear)))
    ends = scale.inverted().transform(np.linspace(low, high, count + 1))
    ends[[0, -1]] = lowest, highest
    return np.histogram(nodes, ends, weights=weights)[0], ends, linear


def _draw_whole_density(axes: Axes, rows: pd.DataFrame, color: str) -> None:
    quadratures = len(rows[["batch", "probe"]].drop_duplicates())
    weights = rows["weight"].to_numpy() / quadratures
    shares, ends, linear = shares_of_bars(rows["node"].to_numpy(), weights)
    axes.set_xscale("symlog", linthresh=linear)
    axes.xaxis.set_major_locator(_powers(linear))
    axes.set_yscale("log")
    lowest = _BELOW * shares[shares > 0].min()
    axes.stairs(shares, ends, baseline=lowest, fill=True, color=color, ec=color, lw=HAIR)
    axes.set_ylim(lowest, _ABOVE * shares.max())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.axvline(0, **ZERO, zorder=1)


def _powers(linear: float) -> SymmetricalLogLocator:
    powers = SymmetricalLogLocator(base=10, linthresh=linear)
    powers.set_params(numticks=_TICKS)
    return powers


def plot_hessian_density(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a row per snapshot and a panel per model, each with axes of its own."""
    snapshots = table["snapshot"].unique()
    rows = stack_panels(len(members), len(snapshots))
    for panels, snapshot in zip(rows, snapshots, strict=True):
        for axes, member in zip(panels.axes, members, strict=True):
            own = rows_of(table, member.model, snapshot=snapshot)
            _draw_whole_density(axes, own, look_of(member).color)
            low, high = (minus(f"{own['node'].agg(end):.4g}") for end in ("min", "max"))
            title = panels.in_lines(f"{member.label}, {moment(snapshot)}")
            axes.set_title(f"{title}\nfrom {low} to {high}")
        last = panels is rows[-1]
        panels.label("Eigenvalue of the Hessian" if last else "", "Share of eigenvalues", "own")
    lines = len(snapshots) * ceil(len(members) / rows[0].columns)
    rows[0].resize(height=1.85 * lines + 0.2)
    return rows[0].figure


# The number of resamples and the seed of the bootstrap over batches.
_RESAMPLES, _SEED = 2000, 0
# How far the points of models lie apart, as a share of a row's height, and that height in inches.
_APART, _ROW = 0.5, 0.32
# Leaves every other one of eight powers of ten, of both signs, below a panel.
_TICKS = 5


def over_batches(rows: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """Return a value of each part: its mean over batches, the interval of that, and all values."""
    wide = values.groupby([rows["batch"], rows["index"]]).first().unstack()
    low, high, _ = spread(wide.to_numpy(), _RESAMPLES, _SEED)
    means = {"mean": wide.mean(), "low": low, "high": high}
    return pd.DataFrame(means | {"batches": [*wide.to_numpy().T]})


# An interval of fewer batches than this says little: they are drawn themselves.
_FEWEST = 10
_BATCH: dict[str, Any] = {**HEAD, "alpha": HEAD_ALPHA, "zorder": 2}


def _few_batches(points: pd.DataFrame, legend: Legend) -> Array | None:
    """Return the values of parts in each batch if these are few, which the legend says then."""
    values = np.stack([*points["batches"]])
    if values.shape[1] >= _FEWEST:
        return None
    legend.add_line("one batch", {**_BATCH, "color": GRAY})
    return values


def _means_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what to draw for parts: magnitudes of eigenvalues, and mean eigenvalues of H and G."""
    size = rows["parameters"]
    return {
        "magnitude": over_batches(rows, rows["eigenvalue"].abs()),
        "mean": over_batches(rows, rows["trace"] / size),
        "gauss_newton": over_batches(rows, rows["gauss_newton_trace"] / size),
    }


_LARGEST, _MEAN = "Largest |eigenvalue|", "Mean eigenvalue"
_LABELS = {"mean": "Hessian", "gauss_newton": "Gauss-Newton part"}


def _linear_below(means: pd.Series) -> float:
    """Return the magnitude below which an axis is linear, since a few means are much smaller."""
    smallest = float(means.abs().quantile(0.1))
    return 10.0 ** ceil(log10(smallest)) if smallest > 0 else 1.0


def _draw_blocks(panel: Panel, depth: pd.Series, points: pd.DataFrame) -> None:
    at, each = depth[points.index], _few_batches(points, panel.legend)
    if each is None:
        panel.draw_interval(at, points["low"], points["high"])
    else:
        panel.axes.plot(at, each, color=panel.look.color, **_BATCH)
    panel.draw_curve(at, points["mean"])


def plot_curvature(table: pd.DataFrame, blocks: pd.DataFrame, members: Members) -> Figure:
    """Draw two panels per model and snapshot: largest eigenvalues of blocks, below their means."""
    snapshots = table["snapshot"].unique()
    panels = stack_panels(len(members), 2 * len(snapshots))
    for label in _LABELS.values():
        panels[0].legend.expect(label)
    dashed = {"color": GRAY, **DASHED}
    for nth, snapshot in enumerate(snapshots):
        upper, lower = panels[2 * nth : 2 * nth + 2]
        rows = table[(table["snapshot"] == snapshot) & (table["of"] == "block")]
        pairs = zip(upper.of_models(members, rows), lower.of_models(members, rows), strict=True)
        for (above, below), member in zip(pairs, members, strict=True):
            points = rows_of(blocks, member.model, ["index"])
            depth = points.set_index("index")["depth"].rolling(2, min_periods=1).mean()
            # The head lies behind the last state.
            drawn = _means_of(above.rows[above.rows["index"] < len(points)])
            # Set before anything is drawn, since margins depend on the scale at that time.
            above.axes.set_yscale("log")
            linear = drawn["gauss_newton"]["mean"]
            below.axes.set_yscale("symlog", linthresh=_linear_below(linear))
            above.draw_bands(points)
            below.draw_bands(points)
            below.draw_curve(depth[linear.index], linear, **dashed)
            _draw_blocks(above, depth, drawn["magnitude"])
            _draw_blocks(below, depth, drawn["mean"])
            below.legend.add_line(_LABELS["gauss_newton"], dashed)
            below.legend.add_marker(_LABELS["mean"], below.look.line, below.look)
            below.axes.axhline(0, **ZERO, zorder=0.5)
            if len(snapshots) > 1:
                above.axes.set_title(upper.in_lines(f"{member.label}, {moment(snapshot)}"))
        upper.label("", _LARGEST, "own")
        lower.label("", _MEAN, "own")
    return panels[-1].finish("Normalized depth", _MEAN)


def _draw_in_rows(
    axes: Axes, heights: Array, points: pd.DataFrame, style: Mapping[str, Any], legend: Legend
) -> None:
    """Draw means in rows with their intervals, or with the values in each of few batches."""
    each = _few_batches(points, legend)
    low, high = (points[end] if each is None else np.nan for end in ("low", "high"))
    draw_points_with_intervals(axes, heights, (low, points["mean"], high), style)
    if each is None:
        legend.add_line(INTERVAL, {"color": GRAY, "linewidth": INTERVAL_WIDTH})
    else:
        face = style.get("markerfacecolor", style["color"])
        look = _BATCH | {"color": style["color"], "mfc": face, "markeredgewidth": HAIR}
        axes.plot(each, heights, **look)


def plot_curvature_by_layer(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a row per kind of layer: the largest eigenvalue of each model, and the mean."""
    rows = table[table["of"] != "block"]
    snapshots = list(dict.fromkeys(rows["snapshot"]))
    # The network first, then kinds of layers by number.
    order = rows.sort_values("index").sort_values("of", ascending=False, kind="stable")
    parts = list(dict.fromkeys(order["part"]))
    several = len(snapshots) > 1
    labels = [
        f"{part}, {moment(each)}" if several else part for each in snapshots for part in parts
    ]
    panels = make_row_panels(labels, _ROW, 0.3)
    left, right = panels.axes
    for row in range(0, len(labels), 2):
        for axes in panels.axes:
            axes.axhspan(row - 0.48, row + 0.48, **EVERY_SECOND, zorder=0)
    offsets = np.linspace(-_APART / 2, _APART / 2, len(members)) if len(members) > 1 else [0.0]
    for member, look in zip(members, looks_of(members), strict=True):
        panels.legend.add_marker(member.label, look.line, look)
    for member, look, offset in zip(members, looks_of(members), offsets, strict=True):
        for nth, snapshot in enumerate(snapshots):
            own = rows_of(rows, member.model, snapshot=snapshot)
            numbers = own["part"].map(parts.index)
            drawn = _means_of(own.assign(index=numbers))
            at = drawn["mean"].index.to_numpy() + nth * len(parts) + offset
            _draw_in_rows(left, at, drawn["magnitude"], look.line, panels.legend)
            _draw_in_rows(right, at, drawn["gauss_newton"], look.hollow, panels.legend)
            _draw_in_rows(right, at, drawn["mean"], look.line, panels.legend)
    panels.legend.add_marker(f"open: {_LABELS['gauss_newton']}", looks_of(members)[0].hollow, GRAY)
    left.set_xscale("log")
    means = rows["gauss_newton_trace"] / rows["parameters"]
    linear = _linear_below(means)
    right.set_xscale("symlog", linthresh=linear)
    right.xaxis.set_major_locator(_powers(linear))
    right.axvline(0, **ZERO, zorder=0.5)
    panels.label("", "")
    left.set_xlabel(_LARGEST)
    right.set_xlabel(_MEAN)
    panels.legend.draw(panels.figure)
    return panels.figure
