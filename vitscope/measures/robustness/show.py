from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.intervals import known_share_interval
from vitscope.claims.points import AllPublished
from vitscope.corruptions import CLEAN, CORRUPTIONS, GROUPS, MEAN
from vitscope.drawing.axes import begin_at_zero
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import INTERVAL
from vitscope.drawing.looks import (
    BAR_ALPHA,
    EVERY_SECOND,
    GRAY,
    INTERVAL_WIDTH,
    Look,
    looks_of,
    text_scale,
)
from vitscope.drawing.panels import Panels, columns_of, page_width
from vitscope.drawing.scatter import plot_scatter

# The scores that are drawn by severity: column, label, and factor of the values.
SCORES = (("accuracy", "Accuracy (%)", 100), ("nll", "NLL", 1), ("ece", "ECE (%)", 100))
# Sizes in inches.
_ROW_HEIGHT = 0.2
_REST_HEIGHT = 0.75  # labels and ticks of the panel of errors
_LEAST_HEIGHT = 3.0
_LEAST_WIDTH = 2.5
# The axes of the panel of one point for each model.
_AXES = {"accuracy": "Accuracy (%)", "robustness": "Robustness (%)"}
_ENDS = ["ci_low", "error", "ci_high"]
# The share of a row's height over which the points of the models are spread.
_APART = 0.7


def _corruption_errors_in_percent(rows: pd.DataFrame) -> pd.DataFrame:
    """Return errors and intervals in percent, by row: clean images, the mean, each corruption."""
    errors = rows.set_index("corruption")
    clean = rows["clean_error"].iloc[0]
    low, high = known_share_interval(clean, int(rows["images"].iloc[0]))
    errors.loc[CLEAN, _ENDS] = low, clean, high
    present = [name for name in CORRUPTIONS if name in errors.index]
    return 100 * errors.loc[[CLEAN, MEAN, *present], _ENDS].astype(float)


def _draw_corruption_errors(
    axes: Axes, errors: Sequence[pd.DataFrame], looks: Sequence[Look]
) -> None:
    names = errors[0].index
    rows = np.arange(len(names))
    for nth, (of_model, look) in enumerate(zip(errors, looks, strict=True)):
        at = rows + _APART * ((nth + 0.5) / len(errors) - 0.5)
        low, values, high = of_model.T.to_numpy()
        style: dict[str, Any] = {"color": look.color, "alpha": BAR_ALPHA, "zorder": 2}
        axes.hlines(at, low, high, linewidth=INTERVAL_WIDTH, **style)
        axes.plot(values, at, **look.line, linestyle="", clip_on=False, zorder=3)
    axes.set_yticks(rows, [_corruption_in_words(name) for name in names])
    axes.get_yticklabels()[names.tolist().index(MEAN)].set_fontweight("bold")
    axes.set(xlabel="Error (%)", ylim=(len(names) - 0.5, -0.5))
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)


def _corruption_in_words(name: str) -> str:
    others = {CLEAN: "no corruption", MEAN: "mean of corruptions"}
    words = others.get(name, name.replace("_", " "))
    return words.replace("gaussian", "Gaussian").replace("jpeg", "JPEG")


def _mark_corruption_groups(axes: Axes, shown: Sequence[str]) -> None:
    for number, (group, names) in enumerate(GROUPS.items()):
        rows = [row for row, name in enumerate(shown) if name in names]
        if not rows:
            continue
        if number % 2 == 0:
            axes.axhspan(rows[0] - 0.5, rows[-1] + 0.5, **EVERY_SECOND, zorder=0)
        axes.text(
            1.01,
            (rows[0] + rows[-1]) / 2,
            group,
            transform=axes.get_yaxis_transform(),
            rotation=270,
            va="center",
            fontsize=matplotlib.rcParams["ytick.labelsize"],
        )


def _robustness_panels(rows: int) -> Panels:
    """Return a panel for each score, stacked, and one with `rows` rows for errors.

    The panel of errors is beside the others, or below them on a narrow page.
    """
    columns = columns_of(2, _LEAST_WIDTH)
    least = _LEAST_HEIGHT * text_scale()
    high = max(least, (rows * _ROW_HEIGHT + _REST_HEIGHT) * text_scale())
    if columns > 1:
        figure = Figure(figsize=(page_width(), high))
        parts = figure.add_gridspec(1, 2, width_ratios=(1, 1.5))
    else:
        figure = Figure(figsize=(page_width(), least + high))
        parts = figure.add_gridspec(2, 1, height_ratios=(least, high))
    left = parts[0].subgridspec(len(SCORES), 1).subplots(sharex=True, squeeze=False)[:, 0]
    return Panels(figure, [*left, figure.add_subplot(parts[1])], columns)


def plot_robustness(
    table: pd.DataFrame, corruption_error: pd.DataFrame, members: Members
) -> Figure:
    """Draw the scores of all models by severity (left) and their errors by corruption (right)."""
    looks = looks_of(members)
    of_models = [rows_of(corruption_error, m.model) for m in members]
    errors = [*map(_corruption_errors_in_percent, of_models)]
    panels = _robustness_panels(len(errors[0]))
    *scores, by_corruption = panels.axes
    for member, look in zip(members, looks, strict=True):
        rows = rows_of(table, member.model)
        count_rows(rows, *scores)
        by_severity = rows.groupby("severity")
        for axes, (column, _, scale) in zip(scores, SCORES, strict=True):
            values = by_severity[column].mean() * scale
            axes.plot(values.index, values, **look.curve, clip_on=False, zorder=3)
    for axes, (_, label, _) in zip(scores, SCORES, strict=True):
        axes.set_ylabel(label)
    for axes in scores[1:]:
        begin_at_zero(axes)
    scores[-1].set_xticks(sorted(table["severity"].unique()))
    scores[-1].set_xlabel("Severity (0: no corruption)")
    panels.figure.align_ylabels(scores)
    count_rows(pd.concat(of_models), by_corruption)
    _draw_corruption_errors(by_corruption, errors, looks)
    _mark_corruption_groups(by_corruption, errors[0].index.tolist())
    panels.legend.add_models(members)
    interval: dict[str, Any] = {"alpha": BAR_ALPHA, "linewidth": INTERVAL_WIDTH}
    panels.legend.add_line(INTERVAL, {"color": GRAY, **interval})
    panels.legend.draw(panels.figure)
    return panels.figure


def plot_robustness_by_accuracy(
    table: pd.DataFrame, members: Members, published: AllPublished
) -> Figure:
    """Draw the robustness of models by their accuracy, a point for each model."""
    rows = pd.concat([rows_of(table, member.model) for member in members])
    errors = rows[rows["corruption"] == MEAN].set_index("model")
    clean = [
        known_share_interval(share, int(images))
        for share, images in zip(errors["clean_error"], errors["images"], strict=True)
    ]
    lowest, highest = (list(ends) for ends in zip(*clean, strict=True))
    # What is not an error: its interval ends where that of the error begins.
    columns = {"accuracy": "clean_error", "robustness": "error"}
    columns |= {"robustness_low": "ci_high", "robustness_high": "ci_low"}
    columns |= {"accuracy_low": "highest", "accuracy_high": "lowest"}
    errors = errors.assign(lowest=lowest, highest=highest)
    values = pd.DataFrame({name: 100 - 100 * errors[of] for name, of in columns.items()})
    return plot_scatter(values, {"": rows}, _AXES, members, published)
