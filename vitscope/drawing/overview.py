"""The figures of the paper on one page: published curves above measured ones, and verdicts."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill, wrap
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import MaxNLocator

from vitscope.claims.across_networks import across_networks, common_statement, say_across
from vitscope.claims.counting import once_per_recipe
from vitscope.drawing.axes import tick_locator
from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import Look, looks_of
from vitscope.drawing.panels import Panel, page_width
from vitscope.drawing.verdicts_page import Mark, Said, height_of_claims, write_columns_of_claims

# Draws the points of one model, measured or published, which are the rows of the panel.
Sketch = Callable[[Panel], None]

# Inches.
_NARROWEST = 5.5  # the page, which a column of text is too narrow for
_COLUMN = 1.1  # a figure beside others
_CLAIMS = 2.7  # a column of claims
_PANEL = 0.5  # the height of a panel
_PART = 0.34  # the same of one that stands over another
_LABELS = 0.73  # the names and labels of panels, above and below
_DATA = 0.35  # the names of the images above what is measured, three lines
_LEGEND = 0.45
_LEFT = 0.15  # from the edge of the page to its claims

_SMALL = 6  # the size of text in points
_CLAIM_LETTERS_PER_INCH = 22
_LETTERS_OF_QUANTITY = 16  # per line above or below a panel
_LETTERS_OF_MARK = 4  # that are as wide as a mark


class OverviewFigure(NamedTuple):
    """A figure of the overview; `table` is None where nothing is measured.

    `data` names the images that each model saw. Models stand `apart`, one below the other, where
    bands of depth belong to each of them.
    """

    name: str
    sketch: Sketch
    members: Sequence[Member]
    published: Mapping[str, pd.DataFrame]
    table: pd.DataFrame | None
    data: Mapping[str, str] = {}
    apart: bool = False

    @property
    def drawn(self) -> list[tuple[Member, Look]]:
        """The models with published points, and their looks."""
        every = zip(self.members, looks_of(self.members), strict=True)
        return [(member, look) for member, look in every if member.model in self.published]

    @property
    def parts(self) -> int:
        """In how many panels the models stand."""
        return len(self.drawn) if self.apart else 1


def plot_overview(
    figures: Sequence[OverviewFigure], claims: pd.DataFrame | None, labels: Mapping[str, str]
) -> Figure:
    """Draw a column for each figure; `claims` are None where nothing is measured.

    Below all stand their claims, with the verdicts in all rows of `claims`, which are those of all
    networks of the study; `labels` names them.
    """
    width = max(page_width(), _NARROWEST)
    across = int(width / _COLUMN)
    bands = [figures[at : at + across] for at in range(0, len(figures), across)]
    sides = ("published",) if claims is None else ("published", "measured")
    columns = _columns_of_claims(figures, claims, labels, width)
    highs = [max(_PANEL, *(_PART * each.parts for each in band)) for band in bands]
    rows = [high for high in highs for _ in sides]
    labelled = _LABELS + _DATA * (len(sides) - 1)
    parts = sum(rows) + labelled * len(bands) + _LEGEND, max(map(height_of_claims, columns))
    figure = Figure(figsize=(width, sum(parts)))
    (above,), (below,) = figure.subfigures(2, 1, squeeze=False, height_ratios=parts)
    grid = above.add_gridspec(len(rows), across, height_ratios=rows)
    legend = _name_models_in_overview(figures)
    for place, band in enumerate(bands):
        for column, shown in enumerate(band):
            for row, side in enumerate(sides):
                cell = grid[place * len(sides) + row, column]
                axes = _draw_side_of_figure(above, cell, shown, side == "measured", legend)
                if column == 0:
                    # The others are labelled, too, so that the word keeps off their numbers.
                    for each in axes:
                        each.set_ylabel(side if each is axes[0] else " ")
                    above.align_ylabels(axes)
                if side != sides[-1]:
                    axes[-1].set_xlabel("")
    legend.draw(above)
    write_columns_of_claims(below, columns, _LEFT, width)
    return figure


def _columns_of_claims(
    figures: Sequence[OverviewFigure],
    claims: pd.DataFrame | None,
    labels: Mapping[str, str],
    width: float,
) -> list[list[Said]]:
    """Return the verdicts on the claims of all figures, in columns of about the same height."""
    if claims is None:
        return [[]]
    count = int(width / _CLAIMS)
    letters = int(_CLAIM_LETTERS_PER_INCH * width / count)
    said = _verdicts_in_overview(figures, claims, labels, letters)
    columns: list[list[Said]] = [[] for _ in range(count)]
    whole = height_of_claims(said)
    for at, each in enumerate(said):
        above = height_of_claims(said[: at + 1]) / whole
        columns[min(int(above * count - 1e-9), count - 1)].append(each)
    return columns


def _name_models_in_overview(figures: Sequence[OverviewFigure]) -> Legend:
    """Return a legend of all models; those of one look in different figures share an entry."""
    named: dict[Look, dict[str, None]] = {}
    for member, look in (each for shown in figures for each in shown.drawn):
        named.setdefault(look, {})[member.label] = None
    legend = Legend()
    for look, models in named.items():
        legend.add_line(" or ".join(models), look.curve)
    return legend


def _draw_side_of_figure(
    figure: SubFigure, cell: SubplotSpec, shown: OverviewFigure, measured: bool, legend: Legend
) -> list[Axes]:
    """Draw what is published or measured of a figure, in one panel or in one for each model."""
    drawn = shown.drawn
    several = shown.parts
    parts = cell.subgridspec(several, 1, hspace=0)
    places = [cell] if several == 1 else [parts[row, 0] for row in range(several)]
    panels = [figure.add_subplot(place) for place in places]
    for nth, (member, look) in enumerate(drawn):
        table = shown.table if measured else shown.published[member.model]
        if table is not None:
            rows = rows_of(table, member.model) if measured else table
            shown.sketch(Panel(panels[nth % several], look, legend, rows))
    quantity = panels[0].get_ylabel()
    for axes in panels:
        axes.set_ylabel("")
        if axes.get_yscale() == "linear":
            axes.yaxis.set_major_locator(tick_locator() if several == 1 else MaxNLocator(2))
        if axes.get_xscale() == "linear":
            axes.xaxis.set_major_locator(MaxNLocator(2, steps=[1, 2, 5, 10]))
        axes.tick_params(labelsize=_SMALL)
        axes.set_xlabel(fill(axes.get_xlabel(), _LETTERS_OF_QUANTITY), fontsize=_SMALL)
        if axes is not panels[-1]:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
    if not measured:
        lines = [shown.name, *wrap(quantity.replace("\n", " "), _LETTERS_OF_QUANTITY)]
        panels[0].set_title("\n".join(lines), fontsize=_SMALL + 1)
    elif shown.data:
        panels[0].set_title(_say_data(shown), fontsize=_SMALL)
    return panels


def _say_data(shown: OverviewFigure) -> str:
    """Name the images of a figure's models; name the models, too, if they saw other images."""
    drawn = [member for member, _ in shown.drawn]
    data = dict.fromkeys(shown.data[member.model] for member in drawn)
    if len(data) == 1:
        return f"on {next(iter(data))}"
    said = (f"{member.label}: {shown.data[member.model]}" for member in drawn)
    return "\n".join(fill(each, _LETTERS_OF_QUANTITY) for each in said)


def _verdicts_in_overview(
    figures: Sequence[OverviewFigure],
    claims: pd.DataFrame,
    labels: Mapping[str, str],
    letters: int,
) -> list[Said]:
    """Return the verdicts of all networks and recipes of the study on the claims of figures.

    A claim stands with the first of the figures that count it, and is counted in all rows.
    """
    every = once_per_recipe(claims)
    first: dict[str, str] = {}
    for shown in figures:
        for name in claims.loc[claims["figure"] == shown.name, "claim"].unique():
            first.setdefault(name, shown.name)
    found: list[Said] = []
    for name, figure in first.items():
        rows = every[(every["claim"] == name) & every["holds"].notna()]
        if rows.empty:
            continue
        across = across_networks(rows)
        text = f"{figure}: {common_statement(rows)}: {say_across(across, labels)}"
        found.append(([Mark(across.verdict, "")], wrap(text, letters - _LETTERS_OF_MARK)))
    return found
