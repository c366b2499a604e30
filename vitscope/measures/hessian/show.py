from collections.abc import Mapping, Sequence
from math import ceil, floor, log10, nan
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
    PercentFormatter,
    SymmetricalLogLocator,
)

from vitscope.claims.intervals import mean_interval, median_interval
from vitscope.claims.points import AllPublished, PublishedCurve
from vitscope.drawing.axes import draw_points_with_intervals
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members, rows_of
from vitscope.drawing.legends import (
    INTERVAL,
    Legend,
    minus,
    moment,
    percent,
    published_legend_label,
)
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
from vitscope.measures.bootstrap import spread
from vitscope.measures.hessian.claims import sizes_up_to_training

Range = tuple[float, float]

# The standard deviation of the kernel that smooths a density, in decades.
KERNEL = 0.1
# How far an axis reaches beyond the eigenvalues, in decades.
_REACH = 3 * KERNEL
_POINTS = 400

_SIGNS = {"negative": -1, "positive": 1}
_WIDTHS = (1.0, 1.35)
# The height of the title and the labels of a snapshot, in inches.
_PART_HEIGHT = 0.5
_MODEL_HEIGHT = 0.68  # inches
_LEGEND_HEIGHT = 0.2  # inches
# The number of letters per inch of the page in a line of a label, with two panels side by side.
_LETTERS = 7
# The same of a note above all panels, and of a title above two.
_LETTERS_OF_NOTE = 10
_LETTERS_OF_TITLE = 18
# Magnitudes in this range are written out, others as powers of ten.
_PLAIN = (0.01, 10_000)

# An axis may leave out the parts of a published curve below this share of its peak.
_NEGLIGIBLE_SHARE = 0.02
# The height of the marks of eigenvalues above the foot of a panel, as a share of its height.
_FOOT = 0.06


def density_per_decade(eigenvalues: Array, at: Array) -> Array:
    """Return the density per decade of the eigenvalues that have the sign of `at`.

    Over both signs together, the density integrates to 1.
    """
    same = eigenvalues[np.sign(eigenvalues) == np.sign(at[0])]
    off = (np.log10(np.abs(at))[:, None] - np.log10(np.abs(same))) / KERNEL
    kernels = np.exp(-np.square(off) / 2) / (np.sqrt(2 * np.pi) * KERNEL)
    density: Array = kernels.sum(axis=1) / len(eigenvalues)
    return density


def published_per_decade(points: pd.DataFrame) -> tuple[Array, Array]:
    """Return published eigenvalues, and their density on the scale of `density_per_decade`."""
    at = points["eigenvalue"].to_numpy()
    return at, points["density"].to_numpy() * np.abs(at) * np.log(10)


def _published_density(published: PublishedCurve, panel: str) -> tuple[Array, Array]:
    """Return the published eigenvalues of one sign and their density per decade."""
    points = published.points
    points = points[points["panel"] == panel]
    return published_per_decade(points[np.sign(points["eigenvalue"]) == _SIGNS[panel]])


def _eigenvalue_axis_range(
    table: pd.DataFrame, published: AllPublished, panel: str
) -> Range | None:
    """Return the magnitudes at both ends of the axis of a panel, or None if it shows nothing."""
    values = table["eigenvalue"].to_numpy()
    reached = [values[np.sign(values) == _SIGNS[panel]]]
    for curve in published.values():
        at, density = _published_density(curve, panel)
        reached.append(at[density > _NEGLIGIBLE_SHARE * density.max(initial=0)])
    shown = np.abs(np.concatenate(reached))
    if not shown.size:
        return None
    margin = 10**_REACH
    return float(shown.min() / margin), float(shown.max() * margin)


def _eigenvalue_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten in a range; if there are at most two, also three times each."""
    powers = [10.0**decade for decade in range(floor(log10(low)), floor(log10(high)) + 1)]
    between = [times * power for power in powers for times in (1, 3)]
    inside = [[each for each in values if low <= each <= high] for values in (powers, between)]
    return inside[0] if len(inside[0]) > 2 else inside[1]


def _write_none(axes: Axes) -> None:
    axes.text(0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center")


def _prepare_density_axes(axes: Axes, panel: str, reach: Range | None) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(nbins=2, steps=[1, 2, 5, 10]))
    if reach is None:
        axes.set(xticks=[])
        _write_none(axes)
        return
    (low, high), sign = reach, _SIGNS[panel]
    if sign > 0:
        axes.set_xscale("log")
        axes.set_xlim(low, high)
    else:
        # The linear part of the axis is nearer to zero than any eigenvalue: nothing is drawn there.
        axes.set_xscale("symlog", linthresh=low / 10, subs=range(2, 10))
        axes.set_xlim(-high, -low)
    shown = _eigenvalue_ticks(low, high)
    axes.xaxis.set_major_locator(FixedLocator(sorted(sign * each for each in shown)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    if _PLAIN[0] <= min(shown) and max(shown) <= _PLAIN[1]:
        axes.xaxis.set_major_formatter(lambda value, _: minus(f"{value:g}"))
    else:
        axes.xaxis.set_major_formatter(LogFormatterMathtext())


def _doubt_of_eigenvalues(rows: pd.DataFrame) -> str:
    """Return how many eigenvalues have not converged, to follow a title; empty if all have."""
    failed = int((~rows["converged"]).sum())
    return f" ({failed} of {len(rows)} not converged)" if failed else ""


def _spectra_as_in_training(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return a model's spectra of the batches that verdicts are about, and of the smallest ones.

    The latter are None if they are the same.
    """
    sizes = sizes_up_to_training([rows])
    smallest, size = sizes[0], sizes[-1]
    few = rows[rows["images"] == smallest] if smallest < size else None
    return rows[rows["images"] == size], few


def _what_is_bundled(rows: pd.DataFrame) -> str:
    """Return a note on the batch sizes whose spectra were measured before; empty if none were."""
    sizes = [f"{size}" for size in sorted(rows.loc[rows["bundled"], "images"].unique())]
    note = f"batches of {' and '.join(sizes)} images: bundled spectra" if sizes else ""
    return fill(note, int(_LETTERS_OF_NOTE * page_width() / text_scale()))


def _draw_density_of_sign(
    axes: Axes, panel: str, reach: Range, rows: pd.DataFrame, style: Mapping[str, Any]
) -> None:
    at = _SIGNS[panel] * np.geomspace(*reach, _POINTS)
    axes.plot(at, density_per_decade(rows["eigenvalue"].to_numpy(), at), zorder=3, **style)


def _interval_of_negative(rows: pd.DataFrame) -> str:
    """Return the interval over batches of the share that is negative, in parentheses.

    Where all batches have the same share, they say nothing of others: it is empty.
    """
    shares = spectra_of_batches(rows)["share"].to_numpy()
    found = mean_interval(shares) if np.ptp(shares) else None
    if found is None:
        return ""
    low, high = (100 * min(max(end, 0), 1) for end in found)
    return f" ({low:.0f} to {high:.0f})"


def _draw_two_densities(
    pair: Sequence[Axes],
    member: Member,
    rows: pd.DataFrame,
    theirs: PublishedCurve | None,
    ranges: Mapping[str, Range | None],
    legend: Legend,
) -> None:
    (shown, few), color = _spectra_as_in_training(rows), look_of(member).color
    values = shown["eigenvalue"].to_numpy()
    of_size = f"batches of {shown['images'].iloc[0]} images"
    share = f"{percent((values < 0).mean())}{_interval_of_negative(shown)}"
    title = f"{member.label}: {share} negative in {of_size}{_doubt_of_eigenvalues(rows)}"
    title = fill(title, int(_LETTERS_OF_TITLE * page_width() / text_scale()))
    pair[0].set_title(title, loc="left", fontsize="medium", pad=2)
    for axes, (panel, reach) in zip(pair, ranges.items(), strict=True):
        _prepare_density_axes(axes, panel, reach)
        if reach is None:
            continue
        at = _SIGNS[panel] * np.geomspace(*reach, _POINTS)
        _draw_density_of_sign(axes, panel, reach, shown, {"color": color})
        axes.fill_between(at, density_per_decade(values, at), color=color, alpha=RANGE_ALPHA, lw=0)
        if few is not None:
            _draw_density_of_sign(axes, panel, reach, few, {"color": color, **DASHED})
            legend.add_line(of_size, {"color": GRAY})
            legend.add_line(f"batches of {few['images'].iloc[0]}", {"color": GRAY, **DASHED})
        same = values[np.sign(values) == _SIGNS[panel]]
        foot = {**FOOT_MARK, "color": color, "transform": axes.get_xaxis_transform()}
        axes.plot(same, np.full(len(same), _FOOT), **foot, zorder=4)
        if not len(same) and few is None:
            _write_none(axes)
        if theirs:
            axes.plot(*_published_density(theirs, panel), color=color, **DOTTED, zorder=2.5)


def plot_hessian(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw a row per snapshot and model: the densities of negative and of positive eigenvalues."""
    snapshots = table["snapshot"].unique()
    shown = table[table["model"].isin([member.model for member in members])]
    ranges = {panel: _eigenvalue_axis_range(shown, published, panel) for panel in _SIGNS}
    height = (_PART_HEIGHT + _MODEL_HEIGHT * len(members)) * text_scale()
    legend, several = Legend(), shown["images"].nunique() > 1
    below = _LEGEND_HEIGHT * bool(published or several)
    figure = Figure(figsize=(page_width(), height * len(snapshots) + below))
    parts = figure.subfigures(len(snapshots), 1, squeeze=False)[:, 0]
    drawn = []
    for part, snapshot in zip(parts, snapshots, strict=True):
        part.suptitle("\n".join(filter(None, (moment(snapshot), _what_is_bundled(shown)))))
        part.supylabel("Density per decade")
        grid = part.subplots(
            len(members), 2, sharex="col", sharey=True, squeeze=False, width_ratios=_WIDTHS
        )
        for pair, member in zip(grid, members, strict=True):
            rows = rows_of(table, member.model, snapshot=snapshot)
            count_rows(rows, *pair)
            _draw_two_densities(pair, member, rows, published.get(member.model), ranges, legend)
        drawn += grid.ravel().tolist()
    for axes, panel in zip(drawn[-2:], ranges, strict=True):
        label = f"Hessian max eigenvalue ({panel})"
        axes.set_xlabel(fill(label, int(_LETTERS * page_width() / text_scale())))
    highest = max(axes.dataLim.y1 for axes in drawn)
    for axes in drawn:
        axes.set_ylim(0, 1.05 * highest)
    if published:
        if not several:
            legend.add_line("measured", {"color": GRAY})
        named = published_legend_label(published.values(), where="same scale")
        legend.add_line(named, {"color": GRAY, **DOTTED})
    if published or several:
        legend.draw(parts[-1])
    return figure


_NEGATIVE = "Share that is negative"
# The places of models at one batch size, the last one over the first.
_SPREAD_OF_MODELS = 1.2
# The axis of shares begins below zero, so that points at zero are seen whole.
_BELOW_ZERO = -0.03


def spectra_of_batches(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each batch size and batch, the share of negative eigenvalues and the largest."""
    batches = rows.groupby(["images", "batch"])["eigenvalue"]
    return pd.DataFrame(
        {
            "share": batches.agg(lambda values: (values < 0).mean()),
            "largest": batches.agg(lambda values: values.abs().max()),
        }
    )


def _draw_over_batch_sizes(panel: Panel, of_batches: pd.Series, at: float, mean: bool) -> None:
    """Draw a point for each size, with its interval or, of few batches, with every batch."""
    places, points = [], []
    for size in of_batches.index.unique("images").tolist():
        values = of_batches[size].to_numpy()
        low, high = _interval_of_batches(values, mean)
        if len(values) < _FEWEST:
            low = high = np.nan
            panel.axes.plot([size * at] * len(values), values, color=panel.look.color, **_BATCH)
            panel.legend.add_line("one batch", {**_BATCH, "color": GRAY})
        else:
            panel.legend.add_line(INTERVAL, {"color": GRAY, "linewidth": INTERVAL_WIDTH})
        middle = values.mean() if mean else np.median(values)
        panel.axes.plot([size * at] * 2, [low, high], color=panel.look.color, lw=INTERVAL_WIDTH)
        places.append(size * at)
        points.append(middle)
    panel.draw_curve(pd.Series(places), pd.Series(points))


def _interval_of_batches(values: Array, mean: bool) -> tuple[float, float]:
    if not mean:
        return median_interval(values) or (nan, nan)
    low, high, _ = spread(values[:, None], _RESAMPLES, _SEED)
    return float(low[0]), float(high[0])


def plot_hessian_by_batch(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a column per snapshot: the share of negative eigenvalues above, the largest below."""
    snapshots = [*table["snapshot"].unique()]
    upper, lower = stack_panels(len(snapshots), 2)
    upper.legend.add_models(members)
    offsets = _SPREAD_OF_MODELS ** np.linspace(-0.5, 0.5, max(2, len(members)))
    if len(members) == 1:
        offsets = np.ones(1)
    shown = table[table["model"].isin([member.model for member in members])]
    sizes = sorted(shown["images"].unique())
    for above, below, snapshot in zip(upper.axes, lower.axes, snapshots, strict=True):
        above.set_title(upper.in_lines(moment(snapshot)))
        below.set_yscale("log")
        for member, look, at in zip(members, looks_of(members), offsets, strict=True):
            rows = rows_of(shown, member.model, snapshot=snapshot)
            count_rows(rows, above, below)
            spectra = spectra_of_batches(rows)
            for axes, column in ((above, "share"), (below, "largest")):
                panel = Panel(axes, look, upper.legend, rows)
                _draw_over_batch_sizes(panel, spectra[column], at, column == "share")
        trained = shown["training_batch"].dropna().unique()
        for axes in (above, below):
            _set_batch_axis(axes, sizes, trained, upper.legend)
        above.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        above.set_ylim(bottom=_BELOW_ZERO)
        above.axhline(0, **ZERO, zorder=0.4)
    upper.add_note(_what_is_bundled(shown))
    upper.label("", _NEGATIVE, "shared")
    return lower.finish("Images of a batch", _LARGEST, "shared")


def _set_batch_axis(axes: Axes, sizes: Sequence[int], trained: Array, legend: Legend) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([*map(float, sizes)]))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()
    for size in trained:
        axes.axvline(size, **ZERO, zorder=0.5)
        legend.add_line("batch of the training", ZERO)


# The width of a bar on the logarithmic part of the axis, in decades.
_BAR = 0.1
# The lower end of the share axis, as a multiple of the smallest share.
_BELOW = 0.5
# The upper end of the share axis, as a multiple of the largest share.
_ABOVE = 3


def bars_of_hessian_density(nodes: Array, weights: Array) -> tuple[Array, Array, float]:
    """Return the share of all eigenvalues in each bar, the edges of the bars, and a magnitude.

    The axis is linear up to this magnitude.
    """
    linear = _eigenvalue_linear_threshold(pd.Series(nodes))
    scale = SymmetricalLogTransform(10, linear, 1)
    lowest, highest = nodes.min(), nodes.max()
    low, high = scale.transform(np.array([lowest, highest]))
    count = max(1, ceil((high - low) / (_BAR * linear)))
    ends = scale.inverted().transform(np.linspace(low, high, count + 1))
    ends[[0, -1]] = lowest, highest
    return np.histogram(nodes, ends, weights=weights)[0], ends, linear


def _draw_spectral_density(axes: Axes, rows: pd.DataFrame, color: str) -> None:
    quadratures = len(rows[["batch", "probe"]].drop_duplicates())
    weights = rows["weight"].to_numpy() / quadratures
    shares, ends, linear = bars_of_hessian_density(rows["node"].to_numpy(), weights)
    axes.set_xscale("symlog", linthresh=linear)
    axes.xaxis.set_major_locator(_symlog_ticks(linear))
    axes.set_yscale("log")
    lowest = _BELOW * shares[shares > 0].min()
    axes.stairs(shares, ends, baseline=lowest, fill=True, color=color, ec=color, lw=HAIR)
    axes.set_ylim(lowest, _ABOVE * shares.max())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.axvline(0, **ZERO, zorder=1)


def _symlog_ticks(linear: float) -> SymmetricalLogLocator:
    """Return a locator of about a tick per inch of the page, at every second power if need be."""
    powers = SymmetricalLogLocator(base=10, linthresh=linear)
    powers.set_params(numticks=max(3, int(page_width() / text_scale())))
    return powers


def plot_hessian_density(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a row per snapshot with a panel per model; each panel has its own scales."""
    snapshots = table["snapshot"].unique()
    rows = stack_panels(len(members), len(snapshots))
    for panels, snapshot in zip(rows, snapshots, strict=True):
        for axes, member in zip(panels.axes, members, strict=True):
            own = rows_of(table, member.model, snapshot=snapshot)
            count_rows(own, axes)
            _draw_spectral_density(axes, own, look_of(member).color)
            low, high = (minus(f"{own['node'].agg(end):.4g}") for end in ("min", "max"))
            title = panels.in_lines(f"{member.label}, {moment(snapshot)}")
            axes.set_title(f"{title}\nfrom {low} to {high}")
        last = panels is rows[-1]
        panels.label("Eigenvalue of the Hessian" if last else "", "Share of eigenvalues", "own")
    lines = len(snapshots) * ceil(len(members) / rows[0].columns)
    rows[0].resize(height=1.85 * lines * text_scale() + 0.2)
    return rows[0].figure


# The number of resamples of the bootstrap over batches.
_RESAMPLES = 2000
# Seed of the bootstrap over batches.
_SEED = 0
# The distance between the first and the last model of a row, as a share of the row's height.
_APART = 0.5
_ROW = 0.32  # height of a row in inches


def curvature_means_by_part(rows: pd.DataFrame, values: pd.Series) -> pd.DataFrame:
    """Return a row per part: the mean over batches, its interval, and the value in each batch."""
    wide = values.groupby([rows["batch"], rows["index"]]).first().unstack()
    low, high, _ = spread(wide.to_numpy(), _RESAMPLES, _SEED)
    means = {"mean": wide.mean(), "low": low, "high": high}
    return pd.DataFrame(means | {"batches": [*wide.to_numpy().T]})


# With fewer batches than this, an interval says little, so that each batch is drawn instead.
_FEWEST = 10
_BATCH: dict[str, Any] = {**HEAD, "alpha": HEAD_ALPHA, "zorder": 2}


def _curvature_of_few_batches(points: pd.DataFrame, legend: Legend) -> Array | None:
    """Return the values in each batch, (parts, batches), or None if there are many batches.

    If values are returned, the legend gets an entry for them.
    """
    values = np.stack([*points["batches"]])
    if values.shape[1] >= _FEWEST:
        return None
    legend.add_line("one batch", {**_BATCH, "color": GRAY})
    return values


def _curvature_means_over_batches(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return three tables of means over batches, with a row for each part.

    `magnitude` is the magnitude of the largest eigenvalue. `mean` is the mean eigenvalue of the
    Hessian, and `gauss_newton` the mean eigenvalue of its Gauss-Newton part.
    """
    size = rows["parameters"]
    return {
        "magnitude": curvature_means_by_part(rows, rows["eigenvalue"].abs()),
        "mean": curvature_means_by_part(rows, rows["trace"] / size),
        "gauss_newton": curvature_means_by_part(rows, rows["gauss_newton_trace"] / size),
    }


_LARGEST, _MEAN = "Largest |eigenvalue|", "Mean eigenvalue"
_LABELS = {"mean": "Hessian", "gauss_newton": "Gauss-Newton part"}


def _eigenvalue_linear_threshold(means: pd.Series) -> float:
    """Return the magnitude below which an axis is linear: about the tenth percentile of the means.

    Without a linear part, a few much smaller means would stretch the axis.
    """
    smallest = float(means.abs().quantile(0.1))
    return 10.0 ** ceil(log10(smallest)) if smallest > 0 else 1.0


def _draw_curvature_by_depth(panel: Panel, depth: pd.Series, points: pd.DataFrame) -> None:
    at, each = depth[points.index], _curvature_of_few_batches(points, panel.legend)
    if each is None:
        panel.draw_interval(at, points["low"], points["high"])
    else:
        panel.axes.plot(at, each, color=panel.look.color, **_BATCH)
    panel.draw_curve(at, points["mean"])


def plot_curvature(table: pd.DataFrame, blocks: pd.DataFrame, members: Members) -> Figure:
    """Draw two panels per model and snapshot: largest eigenvalues of blocks above mean ones."""
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
            # Leave out the head, which comes after the last cut point and has no depth.
            shown = above.rows[above.rows["index"] < len(points)]
            drawn = _curvature_means_over_batches(shown)
            # Set scales before drawing: matplotlib computes margins from the scale at that time.
            above.axes.set_yscale("log")
            linear = drawn["gauss_newton"]["mean"]
            below.axes.set_yscale("symlog", linthresh=_eigenvalue_linear_threshold(linear))
            above.draw_bands(points)
            below.draw_bands(points)
            below.draw_curve(depth[linear.index], linear, **dashed)
            _draw_curvature_by_depth(above, depth, drawn["magnitude"])
            _draw_curvature_by_depth(below, depth, drawn["mean"])
            below.legend.add_line(_LABELS["gauss_newton"], dashed)
            below.legend.add_marker(_LABELS["mean"], below.look.line, below.look)
            below.axes.axhline(0, **ZERO, zorder=0.5)
            title = f"{member.label}, {moment(snapshot)}" if len(snapshots) > 1 else member.label
            above.axes.set_title(upper.in_lines(f"{title}{_doubt_of_eigenvalues(shown)}"))
        upper.label("", _LARGEST, "own")
        lower.label("", _MEAN, "own")
    return panels[-1].finish("Normalized depth", _MEAN)


def _draw_curvature_in_rows(
    axes: Axes, heights: Array, points: pd.DataFrame, style: Mapping[str, Any], legend: Legend
) -> None:
    """Draw the mean of each part in its row, with its interval or, for few batches, each batch."""
    each = _curvature_of_few_batches(points, legend)
    low, high = (points[end] if each is None else np.nan for end in ("low", "high"))
    draw_points_with_intervals(axes, heights, (low, points["mean"], high), style)
    if each is None:
        legend.add_line(INTERVAL, {"color": GRAY, "linewidth": INTERVAL_WIDTH})
    else:
        face = style.get("markerfacecolor", style["color"])
        look = _BATCH | {"color": style["color"], "mfc": face, "markeredgewidth": HAIR}
        axes.plot(each, heights, **look)


def plot_curvature_by_layer(table: pd.DataFrame, members: Members) -> Figure:
    """Draw a row per kind of layer, and one for the network.

    On the left is the largest eigenvalue of each model, on the right the mean eigenvalue.
    """
    rows = table[table["of"] != "block"]
    snapshots = list(dict.fromkeys(rows["snapshot"]))
    # The network comes first, then kinds of layers by index.
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
        doubt = _doubt_of_eigenvalues(rows[rows["model"] == member.model])
        panels.legend.add_marker(f"{member.label}{doubt}", look.line, look)
    for member, look, offset in zip(members, looks_of(members), offsets, strict=True):
        for nth, snapshot in enumerate(snapshots):
            own = rows_of(rows, member.model, snapshot=snapshot)
            count_rows(own, left, right)
            numbers = own["part"].map(parts.index)
            drawn = _curvature_means_over_batches(own.assign(index=numbers))
            at = drawn["mean"].index.to_numpy() + nth * len(parts) + offset
            _draw_curvature_in_rows(left, at, drawn["magnitude"], look.line, panels.legend)
            _draw_curvature_in_rows(right, at, drawn["gauss_newton"], look.hollow, panels.legend)
            _draw_curvature_in_rows(right, at, drawn["mean"], look.line, panels.legend)
    panels.legend.add_marker(f"open: {_LABELS['gauss_newton']}", looks_of(members)[0].hollow, GRAY)
    left.set_xscale("log")
    means = rows["gauss_newton_trace"] / rows["parameters"]
    linear = _eigenvalue_linear_threshold(means)
    right.set_xscale("symlog", linthresh=linear)
    right.xaxis.set_major_locator(_symlog_ticks(linear))
    right.axvline(0, **ZERO, zorder=0.5)
    panels.label("", "")
    left.set_xlabel(_LARGEST)
    right.set_xlabel(_MEAN)
    panels.legend.draw(panels.figure)
    return panels.figure
