import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from vitscope.claims.claim import Claim, Evidence, attending, attention_against_convolution
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, difference, rank_correlation
from vitscope.drawing.charts import Chart, Curve, Level, Rows
from vitscope.drawing.looks import HOLLOW_OF_ALL, OF_ALL, ZERO

_DASHED = {"linestyle": "--"}


def _log_scale(*panels: Axes) -> None:
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
        scale=_log_scale,
        scales="shared",
    ),
    bands_from=1,
)


def _of_kind(points: Points, tokens: str) -> Points:
    return points.where(points.frame["tokens"] == tokens).known("ratio")


def _carry_more(*both: Points) -> Found | None:
    known = (_of_kind(points, "positions") for points in both)
    one, other = (np.log(each["ratio"]).mean(axis=1) if len(each) else None for each in known)
    return difference(one, other)


def _falls_with_depth(points: Points) -> Found | None:
    token, others = (_of_kind(points, kind) for kind in ("class_token", "positions"))
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
                _carry_more,
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
                _falls_with_depth,
            ),
            "Not in the paper: Raghu et al. 2021 find that in the lower half of a ViT the "
            "shortcut counts for more for the class token than for other tokens, and in the "
            "upper half for less.",
        ),
    ),
    lambda rows, _blocks: rows,
)
