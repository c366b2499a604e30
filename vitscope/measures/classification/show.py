from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from vitscope.claims.points import AllPublished
from vitscope.drawing.axes import draw_points_with_intervals
from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.legends import INTERVAL, percent
from vitscope.drawing.looks import (
    BAR_ALPHA,
    CUE_COLORS,
    CURVE,
    DIAGONAL,
    GRAY,
    HATCHED,
    INTERVAL_BAR,
    INTERVAL_WIDTH,
    PALE,
    REFERENCE,
    TICK,
    Look,
    look_of,
)
from vitscope.drawing.notes import write_over_panel
from vitscope.drawing.panels import Panel, Panels, make_panels_with_strips, make_row_panels
from vitscope.drawing.scatter import plot_scatter
from vitscope.measures.classification.shape_texture import count_classifications_by_cue, letters_of
from vitscope.measures.scores import with_accuracy_intervals

LABELS = {"error_percent": "Test error (%)", "nll_train": "Training NLL"}


def plot_fit(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw a point per model: its training loss over its test error."""
    models = [member.model for member in members]
    shown = table[table["model"].isin(models) & table["metric"].isin([*LABELS])]
    counted = {label: shown[shown["metric"] == metric] for metric, label in LABELS.items()}
    wide = shown.pivot(index="model", columns="metric", values=["value", "ci_low", "ci_high"])
    ends = {"value": "", "ci_low": "_low", "ci_high": "_high"}
    wide.columns = [f"{metric}{ends[end]}" for end, metric in [*wide.columns]]
    theirs = {
        model: replace(curve, points=curve.points.set_index("metric")[["value"]].T)
        for model, curve in published.items()
    }
    return plot_scatter(wide, counted, LABELS, members, theirs)


def _draw_reliability(panel: Panel) -> None:
    axes, bins, color, legend = panel.axes, panel.rows, panel.look.color, panel.legend
    filled = with_accuracy_intervals(bins)
    across: dict[str, Any] = {"x": filled["low"], "width": filled["high"] - filled["low"]}
    across["align"] = "edge"
    gap = filled["confidence"] - filled["accuracy"]
    style: dict[str, Any] = {"color": color, "alpha": BAR_ALPHA, "lw": 0}
    axes.bar(height=filled["accuracy"], **style, **across)
    axes.bar(height=gap, bottom=filled["accuracy"], edgecolor=color, **HATCHED, **across)
    middles = (filled["low"] + filled["high"]) / 2
    axes.vlines(middles, filled["ci_low"], filled["ci_high"], color=color, lw=CURVE, zorder=3)
    axes.plot([0, 1], [0, 1], **DIAGONAL)
    legend.add_shade("accuracy", color, BAR_ALPHA)
    legend.add("gap to mean confidence", Patch(edgecolor=color, **HATCHED), color)
    legend.add_line("calibrated", DIAGONAL)
    legend.add_marker(INTERVAL, {**INTERVAL_BAR, "color": color}, color)
    axes.set(xlim=(0, 1), ylim=(0, 1))


def _classification_in_words(scores: pd.Series) -> str:
    names = ("accuracy", "ece", "ece_calibrated")
    accuracy, ece, calibrated = (percent(scores[name], ".1f") for name in names)
    signed = scores["signed_ece"]
    sure = "overconfident" if signed > 0 else "underconfident"
    return (
        f"accuracy {accuracy}, NLL {scores['nll']:.2f}\n{sure} by {percent(abs(signed), '.1f')}\n"
        f"ECE {ece} (calibrated: {calibrated})"
    )


def plot_reliability(table: pd.DataFrame, classification: pd.DataFrame, members: Members) -> Figure:
    """Draw one panel per model: accuracy by bin of confidence, and below it the images per bin."""
    diagrams, histograms = make_panels_with_strips(len(members))
    shown = zip(diagrams.of_models(members, table, ()), histograms.axes, members, strict=True)
    for panel, below, member in shown:
        scores = rows_of(classification, member.model).iloc[0]
        _draw_reliability(panel)
        write_over_panel(panel.axes, _classification_in_words(scores))
        bins = panel.rows
        count_rows(bins, below)
        share, width = bins["images"] / bins["images"].sum(), bins["high"] - bins["low"]
        below.bar(bins["low"], share, width, align="edge", linewidth=0, color=PALE)
        panel.legend.add_shade("share of images", PALE, 1)
    highest = max(below.get_ylim()[1] for below in histograms.axes)
    for below in histograms.axes:
        below.set_ylim(0, highest)
    diagrams.label("", "Accuracy")
    return histograms.finish("Confidence", "Share of\nimages")


_BIAS = ["ci_low", "shape_bias", "ci_high"]
_CONSISTENCY = ["consistency_low", "consistency", "consistency_high"]


def _draw_classifications(
    panels: Panels, height: int, whole: pd.Series, biases: pd.Series, style: Mapping[str, Any]
) -> None:
    """Draw the row of an observer: decisions by cue, shape biases, and consistency if known.

    `whole` is about all images, `biases` holds the shape bias for the images of each shape.
    """
    decisions, bias, *beside = panels.axes
    shape, texture = whole["shape_accuracy"], whole["texture_accuracy"]
    shares, start = (shape, texture, 1 - shape - texture), 0.0
    for share, color in zip(shares, CUE_COLORS.values(), strict=True):
        decisions.barh(height, share, 0.7, left=start, color=color, linewidth=0)
        start += share
    bias.plot(biases, [height] * len(biases), color=style["color"], **TICK)
    draw_points_with_intervals(bias, height, whole[_BIAS], style, clip_on=False)
    for axes in beside:
        draw_points_with_intervals(axes, height, whole[_CONSISTENCY], style, clip_on=False)


def plot_shape_texture(table: pd.DataFrame, members: Members, published: AllPublished) -> Figure:
    """Draw a row per model: left the shares of its decisions by cue, then its shape bias.

    A third panel has the error consistency with people, if it is known.
    """
    known = bool(published) or table["consistency"].notna().any()
    labels = [*(member.label for member in members), *(each.series for each in published.values())]
    panels = make_row_panels(labels, 0.2, count=3 if known else 2)
    decisions, bias, *beside = panels.axes
    bias.axvline(0.5, **REFERENCE)
    for height, member in enumerate(members):
        rows, style = rows_of(table, member.model), look_of(member).line
        of_all = rows["class_name"] == "all"
        count_rows(rows[of_all], *panels.axes)
        _draw_classifications(
            panels, height, rows[of_all].iloc[0], rows.loc[~of_all, "shape_bias"], style
        )
    for name, color in CUE_COLORS.items():
        panels.legend.add_shade(name, color, 1)
    all_images = {"color": GRAY, "marker": "o", "linewidth": INTERVAL_WIDTH}
    panels.legend.add_line(f"all images, {INTERVAL}", all_images)
    panels.legend.add_line("images of one shape", {"color": GRAY, **TICK})
    columns = ["shape_accuracy", "texture_accuracy", *_BIAS, *_CONSISTENCY]
    for height, theirs in enumerate(published.values(), len(members)):
        letters = letters_of(theirs.points["decisions"])
        found = count_classifications_by_cue(letters).reindex(columns=columns)
        found["consistency"] = theirs.points["consistency"].mean()
        style = Look(GRAY, "o").hollow
        _draw_classifications(panels, height, found.iloc[0], found["shape_bias"].iloc[1:], style)
        panels.legend.add_marker("published", style)
    decisions.set(xlim=(0, 1), xlabel="Share of images decided by")
    bias.set(xlim=(0, 1), xlabel="Shape bias")
    for axes in beside:
        axes.axvline(0, **REFERENCE)
        axes.set_xlabel("Error consistency with people")
    panels.legend.draw(panels.figure)
    return panels.figure
