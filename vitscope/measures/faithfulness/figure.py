"""How the probability of a class goes while pixels that a map names are deleted, or inserted."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.figure import Member
from vitscope.drawing.looks import METHOD_STYLES
from vitscope.drawing.panels import make_panels
from vitscope.measures.class_maps.figure import METHODS


def _draw(table: pd.DataFrame, members: Sequence[Member], change: str) -> Figure:
    """Draw a panel per model, and in it a curve for each method; one scale for all."""
    panels = make_panels(len(members))
    shown = table[table["change"] == change]
    shown = shown.assign(percent=100 * shown["share"])
    methods = [method for method in METHOD_STYLES if method in {*shown["method"]}]
    names = {**METHODS, "random": "random map"}
    for method in methods:
        panels.legend.add_line(names[method], METHOD_STYLES[method])
    for panel in panels.of_models(members, shown, ["share"]):
        for method in methods:
            points = panel.rows[panel.rows["method"] == method]
            if len(points):
                style = METHOD_STYLES[method]
                panel.draw_points(points, "probability", "percent", 100, **style)
        panel.axes.set(xlim=(0, 100), ylim=(0, 100))
    return panels.finish(f"Pixels {change} (%)", "Probability (%)")


def plot_deletion(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw the probability by the share of the pixels that are deleted."""
    return _draw(table, members, "deleted")


def plot_insertion(table: pd.DataFrame, members: Sequence[Member]) -> Figure:
    """Draw the probability by the share of the pixels that are inserted."""
    return _draw(table, members, "inserted")
