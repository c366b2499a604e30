import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from vitscope.claims.claim import (
    Claim,
    Evidence,
    ScoredCurve,
    attending,
    attention_against_convolution,
    every_model,
    make_claims,
)
from vitscope.claims.points import AllPublished, Points, Published, subsamples
from vitscope.claims.statistics import (
    Found,
    Statistic,
    difference,
    rank_correlation,
    share,
)
from vitscope.drawing.charts import Chart, Curve, Level, Rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import INTERVAL
from vitscope.drawing.looks import CURVE, HOLLOW_OF_ALL, INTERVAL_BAR, OF_ALL, ZERO
from vitscope.drawing.panels import Panel, make_panels, members_apart
from vitscope.files.arrays import Array

_LABEL = "Change of accuracy\nwithout the block (points)"
# The `source` of a published point that lies outside its figure, and so was extrapolated.
_OFF_SCALE = "extrapolated_offscale"
_OFF_SCALE_MARKER = 7  # A caret that points down.


def _draw_published_lesions(panel: Panel, theirs: Published) -> None:
    units, look = theirs.points, panel.look
    # The index of published units begins at 0, and their depth goes from 0 to 1.
    depth = (units["index"] + 0.5) / (round((units["index"] / units["depth"]).iloc[-1]) + 1)
    off = units.get("source", pd.Series("", units.index)) == _OFF_SCALE
    size = 1.6 * look.line["markersize"]
    caret = {**look.hollow, "marker": _OFF_SCALE_MARKER, "markersize": size}
    panel.name_published(theirs)
    if off.any():
        panel.legend.add_marker("extrapolated", caret, look)
    for rows, style in ((~off, look.hollow), (off, caret)):
        panel.axes.plot(depth[rows], units["change"][rows], linestyle="", **style, zorder=2.5)


def plot_lesion(
    table: pd.DataFrame, blocks: pd.DataFrame, members: Members, published: AllPublished
) -> Figure:
    """Draw one panel per model: the change of accuracy without each unit, in the unit's band."""
    apart = members_apart(members, published)
    panels = make_panels(len(members) + len(apart))
    models = panels.of_models(members, table, published=published)
    for panel, member in zip(models, members, strict=True):
        points = rows_of(blocks, member.model, ["index"])
        panel.draw_bands(points)
        if panel.theirs:
            _draw_published_lesions(panel, panel.theirs)
        # A unit is in the middle of its band.
        middles = points.set_index("index")["depth"].rolling(2).mean()
        units, look = panel.rows, panel.look
        depth, low = middles[units["index"]].reset_index(drop=True), units["ci_low"]
        panel.axes.vlines(depth, low, units["ci_high"], color=look.color, lw=CURVE, zorder=3)
        panel.axes.plot(depth, units["change"], **look.line, linestyle="", zorder=3)
        if low.notna().any():
            panel.legend.add_marker(INTERVAL, {**INTERVAL_BAR, "color": look.color}, look.color)
    for panel, member in zip(panels.of_published(apart, published), apart, strict=True):
        _draw_published_lesions(panel, published[member.model])
        panel.axes.set_xlim(0, 1)
    for axes in panels.axes:
        axes.axhline(0, **ZERO, zorder=0.5)
    return panels.finish("Normalized depth", _LABEL, "shared")


_WHY = (
    "The paper's Fig. 10b. Blocks that subsample do not count: they begin stages, and removing "
    "them costs more than removing Convs alone; the published figure has no points for them. A "
    "model with one stage, or without a stage that counts, has no such claim."
)


def _last_lesion_minus_first(points: Points, kind: str) -> Array:
    """Return for each stage the change without the last block of a kind minus without the first."""
    frame = points.frame
    chosen = (frame["kind"] == kind) & ~frame["subsampling"] & (frame["stage"].nunique() > 1)
    of_stages = frame[chosen].groupby("stage").groups.values()
    ends = np.array([(rows[0], rows[-1]) for rows in of_stages if len(rows) > 1], int)
    first, last = ends.reshape(-1, 2).T
    return points["change"][:, last] - points["change"][:, first]


def _lesion_costs_more_at(end: str, kind: str, blocks: str) -> Statistic:
    sign = 1 if end == "first" else -1
    ends = ("first", "last")[::sign]
    rule = (
        f"Stages with two or more {blocks} count: a stage is in favour if removing the {ends[0]} "
        f"of them costs more accuracy than removing the {ends[1]}."
    )
    measure = f"share of stages with two or more {blocks}"
    return share(measure, rule, lambda points: sign * _last_lesion_minus_first(points, kind))


def _units_in_lesion_claims(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    points = rows.query("kind != 'stem'").sort_values("index", ignore_index=True)
    # Compare map sizes in the block table, which has all blocks: `rows` lack blocks that merge
    # tokens, since these cannot be removed.
    subsampling = subsamples(blocks.sort_values("index").set_index("index"))
    # The published figure counts units from the first block, our table from the stem.
    return points.assign(unit=points["index"] - 1, subsampling=points["index"].map(subsampling))


def _published_units(points: pd.DataFrame) -> pd.DataFrame:
    # The figure leaves out units that subsample, so a new stage begins after each gap in the index.
    stage = 1 + (points["index"].diff() > 1).cumsum()
    return points.assign(unit=points["index"], stage=stage, subsampling=False)


CLAIMS_LESION = Evidence(
    "lesion",
    make_claims(
        "Fig. 10b",
        every_model,
        _WHY,
        (
            "first_conv_of_stage_matters",
            "Convs matter more at the beginning of a stage than at its end",
            _lesion_costs_more_at("first", "conv", "Convs"),
        ),
        (
            "first_mlp_of_stage_matters",
            "MLPs matter more at the beginning of a stage than at its end",
            _lesion_costs_more_at("first", "mlp", "MLPs"),
        ),
        (
            "last_msa_of_stage_matters",
            "MSAs matter more at the end of a stage than at its beginning",
            _lesion_costs_more_at("last", "msa", "MSAs"),
        ),
    ),
    _units_in_lesion_claims,
    _published_units,
    ScoredCurve("unit", "change"),
)

_DASHED = {"linestyle": "--"}


def _log_scale_of_ratios(*panels: Axes) -> None:
    for axes in panels:
        axes.set_yscale("log")
        axes.set_ylim(axes.dataLim.y0 / 1.2, 1.2 * axes.dataLim.y1)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()


plot_skip_ratio = Chart(
    Rows(
        "Norm of shortcut / branch",
        Curve("ratio", "positions", {"tokens": "positions"}, in_legend=OF_ALL),
        Curve(
            "ratio",
            "class token",
            {"tokens": "class_token"},
            lambda look: look.hollow | _DASHED,
            in_legend=HOLLOW_OF_ALL | _DASHED,
        ),
        Level(1, ZERO | {"zorder": 0.5}),
        scale=_log_scale_of_ratios,
        scales="shared",
    ),
    bands_from=1,
)


def _ratios_of_tokens(points: Points, tokens: str) -> Points:
    return points.where(points.frame["tokens"] == tokens).known("ratio")


def _difference_of_log_ratios(*both: Points) -> Found | None:
    known = (_ratios_of_tokens(points, "positions") for points in both)
    one, other = (np.log(each["ratio"]).mean(axis=1) if len(each) else None for each in known)
    return difference(one, other)


def _class_token_skip_ratio_falls(points: Points) -> Found | None:
    token, others = (_ratios_of_tokens(points, kind) for kind in ("class_token", "positions"))
    depths = token["depth"][0], others["depth"][0]
    depth, of_token, of_others = np.intersect1d(*depths, return_indices=True)
    ratios = token["ratio"][:, of_token] / others["ratio"][:, of_others]
    return rank_correlation(depth[None], -ratios)


CLAIMS_SKIP_RATIO = Evidence(
    "skip_ratio",
    (
        Claim(
            "shortcuts_of_attention_carry_more",
            "Shortcuts of networks with MSAs carry more than those of CNNs",
            "Raghu et al. 2021",
            attention_against_convolution,
            Statistic(
                "difference of mean log ratios",
                "The value is the mean over sums of the natural logarithm of the norm of the "
                "shortcut over that of the branch, of the tokens of positions, of the first "
                "model minus that of the convolutional one.",
                _difference_of_log_ratios,
            ),
            "Not in the paper: Raghu et al. 2021 find that shortcuts are more influential in "
            "ViTs than in ResNets.",
        ),
        Claim(
            "class_token_passes_first",
            "The class token passes through lower shortcuts, other tokens through higher ones",
            "Raghu et al. 2021",
            attending,
            Statistic(
                "rank correlation of ratio and depth, negative",
                "The value is the rank correlation (Spearman), times -1, of depth and the "
                "ratio of norms of the class token divided by that of the tokens of positions.",
                _class_token_skip_ratio_falls,
            ),
            "Not in the paper: Raghu et al. 2021 find that in the lower half of a ViT the "
            "shortcut counts for more for the class token than for other tokens, and in the "
            "upper half for less.",
        ),
    ),
    lambda rows, _blocks: rows,
)
