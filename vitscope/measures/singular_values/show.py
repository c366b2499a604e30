from dataclasses import replace
from math import log

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.claims.claim import Claim, Evidence, attending, in_order
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, compare_kinds, grows_with_depth
from vitscope.drawing.axes import begin_at_zero, depth_bar
from vitscope.drawing.charts import Chart, Curve, Rows
from vitscope.drawing.figure import Members
from vitscope.drawing.looks import DOTTED, GRAY, THIN, curve_of_depth
from vitscope.drawing.panels import stack_panels
from vitscope.measures.singular_values.measure import FLOOR, IMAGES, TOKENS

_LABELS = {TOKENS: "ln(σᵢ / σ₁) of tokens", IMAGES: "ln(σᵢ / σ₁) of images"}


def plot_singular_values(table: pd.DataFrame, members: Members) -> Figure:
    """Draw two panels per model: the spectra of its tokens, and below of its images."""
    upper, lower = stack_panels(len(members), 2)
    for panels, of in ((upper, TOKENS), (lower, IMAGES)):
        for panel in panels.of_models(members, table[table["of"] == of]):
            for row in panel.rows.to_dict("records"):
                ratios = np.asarray(row["log_ratios"], np.float64)
                above = ratios[ratios > log(FLOOR)]
                if len(above):
                    panel.axes.plot(range(1, len(above) + 1), above, **curve_of_depth(row["depth"]))
            panel.axes.set_xlim(1, max(2, panel.rows["most"].max()))
            panel.axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=2))
    depth_bar([*upper.axes, *lower.axes])
    upper.label("", _LABELS[TOKENS], "shared")
    return lower.finish("Singular value i", _LABELS[IMAGES], "shared")


plot_effective_rank = Chart(
    Rows(
        "Effective rank",
        Curve("effective_rank", "tokens of an image", {"of": TOKENS}),
        Curve(
            "effective_rank",
            "means of images",
            {"of": IMAGES},
            lambda look: look.hollow | {"lw": THIN, "zorder": 2.1},
            interval="",
        ),
        Curve(
            "most",
            "largest possible of tokens",
            {"of": TOKENS},
            {"color": GRAY, **DOTTED, "zorder": 2, "clip_on": True},
            interval="",
        ),
        scale=begin_at_zero,
    ),
    bands_of={"of": TOKENS},
)


_VALUE = "effective_rank"
_FALL = grows_with_depth(_VALUE, "effective rank of tokens", sign=-1)


def _fall(points: Points) -> Found | None:
    """Find how the rank falls with depth; None if maps differ in size or channels."""
    sizes = points.known(_VALUE).frame[["height", "width", "channels"]].drop_duplicates()
    return _FALL.find(points) if len(sizes) < 2 else None


def _excess_of_mlps(points: Points) -> Found | None:
    alike = (points.frame["channels"].diff() == 0) & ~points.frame["subsampling"]
    kept = alike.to_numpy()[1:]
    changed = np.diff(points[_VALUE], axis=1)[:, kept]
    return compare_kinds(changed, points.frame["kind"].to_numpy()[1:][kept], "mlp", "msa")


CLAIMS_EFFECTIVE_RANK = Evidence(
    "singular_values",
    (
        Claim(
            "rank_of_tokens_falls",
            "The effective rank of tokens falls with depth",
            "Dong et al. 2021",
            attending,
            replace(
                _FALL,
                find=_fall,
                rule=f"{_FALL.rule} Networks whose maps change their size or their channels "
                "have no such claim: their ranks cannot be compared.",
            ),
            "Not in the paper: Dong et al. 2021 show that the rank of tokens collapses with "
            "depth in attention without shortcuts and MLPs, and that both work against it, so "
            "that it need not fall.",
        ),
        Claim(
            "msas_lower_the_rank",
            "MSAs lower the effective rank of tokens, or raise it less than MLPs do",
            "Dong et al. 2021",
            attending,
            Statistic(
                "difference of changes",
                "The value is the mean change of the effective rank of tokens over MLPs minus the "
                "mean change over MSAs; blocks that subsample or change the channels are left out.",
                _excess_of_mlps,
            ),
            "Not in the paper: Dong et al. 2021 show that attention alone lowers the rank of "
            "tokens, and that MLPs work against it.",
        ),
    ),
    lambda rows, blocks: in_order(rows[rows["of"] == TOKENS], blocks),
)
