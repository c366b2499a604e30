from dataclasses import replace
from math import log

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vitscope.drawing.axes import begin_at_zero, color_bar, depth_bar, in_percent
from vitscope.drawing.changes import Change
from vitscope.drawing.charts import AlongX, Chart, Curve, Rows, Shade, Steps
from vitscope.drawing.figure import Members
from vitscope.drawing.legends import percent
from vitscope.drawing.looks import (
    DOTTED,
    GRAY,
    MAP_COLORS,
    OF_ALL,
    QUARTILES_ALPHA,
    RANGE_ALPHA,
    THIN,
    curve_of_depth,
    text_scale,
)
from vitscope.drawing.notes import write_over_panel
from vitscope.drawing.panels import (
    LEAST,
    LEAST_ALIKE,
    columns_of,
    make_panels,
    make_square_panels,
    stack_panels,
)
from vitscope.measures.tokens.measure import FLOOR, IMAGES, TOKENS

_NORMS = (
    Curve("median", "median", interval="", in_legend=OF_ALL),
    Shade("quartile", "third_quartile", "quartiles", QUARTILES_ALPHA),
    Shade("lowest", "highest", "lowest to highest", RANGE_ALPHA, zorder=0.9),
)


def plot_token_norms(table: pd.DataFrame, members: Members) -> Figure:
    """Draw the norms of each model by depth, and in a last panel the outliers of all models."""
    (threshold,) = table["threshold"].unique()
    panels = make_panels(len(members) + 1)
    *norms, last = panels.axes
    for panel in panels.of_models(members, table):
        panel.draw_bands(panel.rows)
        for layer in _NORMS:
            layer.draw(panel, AlongX())
    begin_at_zero(*norms)
    for panel in replace(panels, axes=[last]).of_groups([members], table, ["index"]):
        Curve("outliers").draw(panel, AlongX())
    # Without outliers, the scale would be empty.
    last.set(title=f"Norm > {threshold:g} × median", xlim=(0, 1))
    last.set(ylabel="Share of tokens", ylim=(0, max(0.01, 1.05 * last.dataLim.y1)))
    in_percent(last)
    return panels.finish("Normalized depth", "Norm of a token", "shared")


_BAR_WIDTH = 0.45  # inches: the width of a panel's colour bar
_LABEL_WIDTH = 0.3  # inches: the label of the last one in a row
_TEXT_HEIGHT = 0.38  # inches: the height of a panel's titles
_NOTE_HEIGHT = 0.25  # inches: the names of models without outliers
_THERE = "Images with an\noutlier there"


def plot_token_outliers(table: pd.DataFrame, members: Members) -> Figure:
    """Draw, per model, how often positions are outliers at the cut point with the most outliers.

    Models without outliers are named above, unless none has any.
    """
    any_there = table.groupby("model")["outliers"].max() > 0
    shown = [each for each in members if any_there[each.model]] or [*members]
    bars = columns_of(len(shown)) * _BAR_WIDTH + _LABEL_WIDTH
    panels = make_square_panels(len(shown), bars, _TEXT_HEIGHT, least=LEAST)
    ends = [*panels.axes[panels.columns - 1 :: panels.columns], panels.axes[-1]]
    for panel in panels.of_models(shown, table):
        row = panel.rows.iloc[int(panel.rows["outliers"].argmax())]
        panel.axes.set(xticks=[], yticks=[])
        said = "no outliers"
        if row["outliers"] > 0:
            said = f"{row['name']}\n{percent(row['outliers'], '.2g')} of tokens"
            _draw_outlier_map(panel.axes, row, _THERE * (panel.axes in ends))
        else:
            panel.axes.text(0.5, 0.5, "none", transform=panel.axes.transAxes, ha="center")
            panel.axes.set(box_aspect=row["height"] / row["width"])
            panel.axes.spines[:].set_visible(True)
        write_over_panel(panel.axes, said)
    if without := [member.label for member in members if member not in shown]:
        panels.resize(height=panels.figure.get_figheight() + _NOTE_HEIGHT * text_scale())
        panels.add_note(f"No outliers: {', '.join(without)}")
    return panels.figure


def _draw_outlier_map(axes: Axes, row: pd.Series, label: str) -> None:
    positions = np.reshape(row["positions"], (row["height"], row["width"]))
    scale = Normalize(0, positions.max())
    cells = axes.imshow(positions, cmap=MAP_COLORS, norm=scale, interpolation="nearest")
    bar = color_bar([axes], cells, label, shrink=0.9, ticks=MaxNLocator(4))
    bar.ax.yaxis.set_major_formatter(lambda share, _: percent(share, ".3g"))


plot_token_similarity = Chart(
    Rows(
        "Cosine similarity of tokens",
        Steps(
            "similarity",
            change=Change("Change of\ncosine similarity", msas_raise=True, linear=0.01),
        ),
        scales="shared",
    )
)
plot_mean_token = Chart(
    Rows(
        "Share of the mean token",
        Steps(
            "share",
            change=Change("Change of share\nof the mean token", msas_raise=True, linear=0.01),
        ),
        scale=begin_at_zero,
        scales="shared",
    )
)


_LABELS = {TOKENS: "ln(σᵢ / σ₁) of tokens", IMAGES: "ln(σᵢ / σ₁) of images"}


def plot_singular_values(table: pd.DataFrame, members: Members) -> Figure:
    """Draw two panels per model: above the spectra of tokens, below the spectra of images."""
    upper, lower = stack_panels(len(members), 2, LEAST_ALIKE)
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
        Curve(
            "effective_rank",
            "tokens of an image",
            {"of": TOKENS},
            change=Change("Change of effective\nrank of tokens (%)", ratio=True, linear=1),
        ),
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
