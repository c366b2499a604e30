from itertools import cycle

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution, value_in_row
from vitscope.claims.points import AllPublished
from vitscope.claims.statistics import larger
from vitscope.drawing.charts import Across, Curve
from vitscope.drawing.figure import Members
from vitscope.drawing.looks import DOTTED, GRAY, REFERENCE, Look, looks_of
from vitscope.drawing.panels import Panels, make_panels

# Inches.
_HEIGHT = 2.4
_MARKERS = "osD^v<>"


def _draw(table: pd.DataFrame, members: Members, change: str, across: str) -> tuple[Panels, Axes]:
    panels = make_panels(1)
    panels.resize(height=_HEIGHT)
    (axes,) = panels.axes
    panels.legend.add_models(members)
    shown = table[table["change"].isin(["none", change])]
    for panel in panels.of_models_together(members, shown, [across]):
        Curve("accuracy", times=100).draw(panel, Across(across))
    for chance in sorted({*shown["chance"]}):
        axes.axhline(100 * chance, **REFERENCE, zorder=1)
        panels.legend.add_line("chance", REFERENCE)
    axes.set_ylim(0, 100)
    return panels, axes


def plot_occlusion(
    table: pd.DataFrame, members: Members, published: AllPublished | None = None
) -> Figure:
    """Draw the accuracy by the share of the patches that are dropped."""
    table = table.assign(percent=100 * table["share"])
    panels, axes = _draw(table, members, "dropped", "percent")
    colors = {m.model: look.color for m, look in zip(members, looks_of(members), strict=True)}
    for (model, theirs), marker in zip((published or {}).items(), cycle(_MARKERS), strict=False):
        style = Look(colors.get(model, GRAY), marker).hollow | DOTTED
        points = 100 * theirs.points[["share", "accuracy"]]
        axes.plot(points["share"], points["accuracy"], **style, clip_on=False, zorder=2.5)
        panels.legend.add_line(f"{theirs.series} (published)", style)
    axes.set_xlim(0, 100)
    return panels.finish("Patches dropped (%)", "Accuracy (%)")


def plot_shuffling(table: pd.DataFrame, members: Members) -> Figure:
    """Draw the accuracy by the grid whose patches are shuffled."""
    panels, axes = _draw(table, members, "shuffled", "grid")
    axes.set_xscale("log")
    grids = sorted({*table.loc[table["change"] != "dropped", "grid"]})
    axes.set_xticks(grids, [f"{grid}×{grid}" for grid in grids])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(grids[0], grids[-1])
    return panels.finish("Grid of patches that are shuffled", "Accuracy (%)")


_WHY = (
    "Not in the paper: Naseer et al. 2021 find that vision transformers {found}. The accuracy kept "
    "is the mean accuracy over all {views}, divided by the accuracy on the images as they are, "
    "whatever that is."
)
_KEEPS_MORE = larger("mean_kept", "accuracy kept")

CLAIMS_OCCLUSION = Evidence(
    "occlusion",
    (
        Claim(
            "msa_withstands_occlusion",
            "MSAs withstand occlusion better than Convs do",
            "Naseer et al. 2021",
            attention_against_convolution,
            _KEEPS_MORE,
            _WHY.format(
                found="withstand occlusion better than CNNs",
                views="shares of patches that are dropped",
            ),
        ),
    ),
    value_in_row("mean_kept", "change", "dropped"),
    # A curve published for a few shares does not give the mean over all.
    lambda _: pd.DataFrame(columns=["measure", "value"]),
)

CLAIMS_SHUFFLING = Evidence(
    "occlusion",
    (
        Claim(
            "msa_withstands_shuffling",
            "MSAs withstand shuffling of patches better than Convs do",
            "Naseer et al. 2021",
            attention_against_convolution,
            _KEEPS_MORE,
            _WHY.format(
                found="keep their accuracy better than CNNs where the spatial structure of "
                "images is disturbed",
                views="grids whose patches are shuffled",
            ),
        ),
    ),
    value_in_row("mean_kept", "change", "shuffled"),
)
