from math import log

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

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
