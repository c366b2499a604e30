"""The figures of the paper on one page: published curves above measured ones, and verdicts."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.claims.across import across_networks, common_statement, say_across
from vitscope.claims.counting import distinct_claims
from vitscope.drawing.axes import tick_locator
from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import Look, looks_of
from vitscope.drawing.panels import page_width
from vitscope.drawing.verdicts import Mark, Said, height_of_claims, write_claims_and_verdicts

# Draws the points of one model, measured or published.
Sketch = Callable[[Axes, pd.DataFrame, Look], None]

# Inches.
_COLUMN = 1.375  # a figure beside others
_PANEL = 0.8  # the height of a panel
_LABELS = 0.24  # the labels of a panel
_DATA = 0.25  # the names of the images above what is measured, two lines
_LEGEND = 0.3
_LEFT = -0.2  # from the edge of a panel to its claims

_SMALL = 6  # the size of text in points
_LETTERS = 19.7  # per inch of a line of a claim
_LETTERS_OF_MARK = 4  # that are as wide as a mark


class Shown(NamedTuple):
    """A figure of the overview; `table` is None where nothing is measured.

    `data` names the images that each model saw.
    """

    name: str
    sketch: Sketch
    members: Sequence[Member]
    published: Mapping[str, pd.DataFrame]
    table: pd.DataFrame | None
    data: Mapping[str, str] = {}


def plot_overview(
    figures: Sequence[Shown], claims: pd.DataFrame | None, labels: Mapping[str, str]
) -> Figure:
    """Draw a column for each figure; `claims` are None where nothing is measured.

    Below a figure stand its claims, with the verdicts in all rows of `claims`, which are those of
    all networks of the study; `labels` names them.
    """
    across = max(1, int(page_width() / _COLUMN))
    letters = int(_LETTERS * page_width() / across)
    bands = [figures[at : at + across] for at in range(0, len(figures), across)]
    said = [
        [_verdicts_in_overview(each, claims, labels, letters) for each in band] for band in bands
    ]
    texts = [max(map(height_of_claims, band)) for band in said]
    panels = 1 + (claims is not None)
    rows = [height for text in texts for height in (*[_PANEL] * panels, text)]
    titles = _LABELS * panels + _DATA * (panels - 1)
    height = sum(rows) + titles * len(bands) + _LEGEND
    figure = Figure(figsize=(page_width(), height))
    grid = figure.add_gridspec(len(rows), across, height_ratios=rows)
    named: dict[Look, dict[str, None]] = {}
    for place, (band, found) in enumerate(zip(bands, said, strict=True)):
        for column, (shown, verdicts) in enumerate(zip(band, found, strict=True)):
            first = place * (panels + 1)
            axes = [figure.add_subplot(grid[first + row, column]) for row in range(panels)]
            _draw_figure_of_overview(axes, shown, named, column)
            text = figure.add_subplot(grid[first + panels, column])
            text.set_axis_off()
            write_claims_and_verdicts(text, verdicts, _LEFT)
    legend = Legend()
    for look, models in named.items():
        # Models in different figures may have the same look, and then share an entry.
        legend.add_line(" or ".join(models), look.curve)
    legend.draw(figure)
    return figure


def _draw_figure_of_overview(
    panels: Sequence[Axes], shown: Shown, named: dict[Look, dict[str, None]], column: int
) -> None:
    """Draw a figure's published curves above its measured ones; add looks of models to `named`."""
    upper, *lower = panels
    for member, look in zip(shown.members, looks_of(shown.members), strict=True):
        if member.model in shown.published:
            shown.sketch(upper, shown.published[member.model], look)
            if shown.table is not None:
                shown.sketch(lower[0], rows_of(shown.table, member.model), look)
            named.setdefault(look, {})[member.label] = None
    upper.set_title(f"{shown.name}\n{upper.get_ylabel()}", fontsize=_SMALL + 1)
    for axes, side in zip(panels, ("published", "measured"), strict=False):
        axes.set_ylabel(side if column == 0 else "")
        axes.yaxis.set_major_locator(tick_locator())
        axes.tick_params(labelsize=_SMALL)
        axes.xaxis.label.set_fontsize(_SMALL + 0.5)
    if lower:
        upper.set_xlabel("")
        if shown.data:
            lower[0].set_title(_say_data(shown), fontsize=_SMALL)


def _say_data(shown: Shown) -> str:
    """Name the images of a figure's models; name the models, too, if they saw other images."""
    drawn = [member for member in shown.members if member.model in shown.published]
    data = dict.fromkeys(shown.data[member.model] for member in drawn)
    if len(data) == 1:
        return f"on {next(iter(data))}"
    return "\n".join(f"{member.label} on {shown.data[member.model]}" for member in drawn)


def _verdicts_in_overview(
    shown: Shown, claims: pd.DataFrame | None, labels: Mapping[str, str], letters: int
) -> list[Said]:
    """Return the verdicts of all networks of the study on the claims that a figure counts."""
    if claims is None:
        return []
    names = claims.loc[claims["figure"] == shown.name, "claim"].unique()
    every = distinct_claims(claims)
    found: list[Said] = []
    for name in names:
        rows = every[(every["claim"] == name) & every["holds"].notna()]
        if rows.empty:
            continue
        across = across_networks(rows)
        text = f"{common_statement(rows)}: {say_across(across, labels)}"
        found.append(([Mark(across.verdict, "")], wrap(text, letters - _LETTERS_OF_MARK)))
    return found
