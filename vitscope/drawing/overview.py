"""The figures of the paper on one page: published curves above measured ones, and verdicts."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.ticker import MaxNLocator

from vitscope.claims.across import across_networks, common_statement, say_across
from vitscope.claims.counting import distinct_claims
from vitscope.drawing.axes import tick_locator
from vitscope.drawing.figure import Member, rows_of
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import Look, looks_of
from vitscope.drawing.panels import Panel, page_width
from vitscope.drawing.verdicts import Mark, Said, height_of_claims, write_claims_and_verdicts

# Draws the points of one model, measured or published, which are the rows of the panel.
Sketch = Callable[[Panel], None]

# Inches.
_COLUMN = 1.375  # a figure beside others
_PANEL = 0.8  # the height of a panel
_PART = 0.6  # the same of one that stands over another
_LABELS = 0.24  # the labels of a panel
_DATA = 0.25  # the names of the images above what is measured, two lines
_LEGEND = 0.3
_LEFT = -0.2  # from the edge of a panel to its claims

_SMALL = 6  # the size of text in points
_LETTERS = 19.7  # per inch of a line of a claim
_LETTERS_OF_QUANTITY = 23  # per line above a panel
_LETTERS_OF_MARK = 4  # that are as wide as a mark


class Shown(NamedTuple):
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
    figures: Sequence[Shown], claims: pd.DataFrame | None, labels: Mapping[str, str]
) -> Figure:
    """Draw a column for each figure; `claims` are None where nothing is measured.

    Below a figure stand its claims, with the verdicts in all rows of `claims`, which are those of
    all networks of the study; `labels` names them.
    """
    across = max(1, int(page_width() / _COLUMN))
    letters = int(_LETTERS * page_width() / across)
    bands = [figures[at : at + across] for at in range(0, len(figures), across)]
    claims = claims if claims is None else _once_per_figure(claims, figures)
    said = [
        [_verdicts_in_overview(each, claims, labels, letters) for each in band] for band in bands
    ]
    texts = [max(map(height_of_claims, band)) for band in said]
    panels = 1 + (claims is not None)
    highs = [max(_PANEL, *(_PART * each.parts for each in band)) for band in bands]
    rows = [
        height
        for high, text in zip(highs, texts, strict=True)
        for height in (*[high] * panels, text)
    ]
    titles = _LABELS * panels + _DATA * (panels - 1)
    height = sum(rows) + titles * len(bands) + _LEGEND
    figure = Figure(figsize=(page_width(), height))
    grid = figure.add_gridspec(len(rows), across, height_ratios=rows)
    legend = _name_models_in_overview(figures)
    for place, (band, found) in enumerate(zip(bands, said, strict=True)):
        for column, (shown, verdicts) in enumerate(zip(band, found, strict=True)):
            first = place * (panels + 1)
            for row, side in enumerate(("published", "measured")[:panels]):
                cell = grid[first + row, column]
                axes = _draw_side_of_figure(figure, cell, shown, side == "measured", legend)
                axes[0].set_ylabel(side if column == 0 else "")
                if row < panels - 1:
                    axes[-1].set_xlabel("")
            text = figure.add_subplot(grid[first + panels, column])
            text.set_axis_off()
            write_claims_and_verdicts(text, verdicts, _LEFT)
    legend.draw(figure)
    return figure


def _name_models_in_overview(figures: Sequence[Shown]) -> Legend:
    """Return a legend of all models; those of one look in different figures share an entry."""
    named: dict[Look, dict[str, None]] = {}
    for member, look in (each for shown in figures for each in shown.drawn):
        named.setdefault(look, {})[member.label] = None
    legend = Legend()
    for look, models in named.items():
        legend.add_line(" or ".join(models), look.curve)
    return legend


def _once_per_figure(claims: pd.DataFrame, figures: Sequence[Shown]) -> pd.DataFrame:
    """Keep the claims of those figures that show them first, as two may count the same."""
    names = [each.name for each in figures]
    first = claims.assign(at=claims["figure"].map({name: at for at, name in enumerate(names)}))
    at = first.groupby("claim")["at"].transform("min")
    return claims[first["at"].isna() | (first["at"] == at)]


def _draw_side_of_figure(
    figure: Figure, cell: SubplotSpec, shown: Shown, measured: bool, legend: Legend
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
        axes.tick_params(labelsize=_SMALL)
        axes.xaxis.label.set_fontsize(_SMALL + 0.5)
        if axes is not panels[-1]:
            axes.set_xlabel("")
            axes.tick_params(labelbottom=False)
    if not measured:
        lines = [shown.name, *wrap(quantity.replace("\n", " "), _LETTERS_OF_QUANTITY)]
        panels[0].set_title("\n".join(lines), fontsize=_SMALL + 1)
    elif shown.data:
        panels[0].set_title(_say_data(shown), fontsize=_SMALL)
    return panels


def _say_data(shown: Shown) -> str:
    """Name the images of a figure's models; name the models, too, if they saw other images."""
    drawn = [member for member, _ in shown.drawn]
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
