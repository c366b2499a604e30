"""Notes over panels and figures: what blocks do, on how many images a panel was measured."""

from textwrap import fill
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from vitscope.drawing.counts import count_rows, counts_of_panels, say_counts
from vitscope.drawing.figure import GIVEN_AXES
from vitscope.drawing.looks import GRAY, text_scale

# A note above the right corner of a panel.
_NOTE: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points", "ha": "right"}
_NOTE |= {"xycoords": "axes fraction", "fontsize": "x-small", "color": GRAY}
# What tells the two texts over a panel from its other texts.
_OVER, _CORNER = "lines over a panel", "note over a corner"
_OVER_TICK = 5  # points from a panel to the lines over it
_OVER_LINES = 6  # points from there to the title, without lines
_LINE_OVER, _SIZE_OVER = 8.2, 6.5  # points of each line, where its text has so many
_LETTERS_OVER = 18  # of a line, per inch of the width of a column of panels
_OVER_NOTE = 10.4  # points between a panel and a title above its note

# Heights in inches.
_NOTE_HEIGHT = 0.14
_OVER_WRITTEN = 0.02  # above that note


def write_over_panel(axes: Axes, text: str) -> None:
    """Write lines between a panel and its title, below those that are there."""
    if not text:
        return
    found = _text_over_panel(axes, _OVER)
    if found is None:
        # Lines may be as wide as the panel, and so stand above the label of its highest tick.
        rules = matplotlib.rcParams
        look = {"ha": "center", "color": rules["text.color"], "fontsize": rules["legend.fontsize"]}
        look["xytext"] = (0, _OVER_TICK * text_scale())
        found = axes.annotate("", (0.5, 1), **_NOTE | look, gid=_OVER)
    said = [found.get_text(), *(_in_lines(axes, line) for line in text.split("\n"))]
    found.set_text("\n".join(filter(None, said)))
    lines = 1 + found.get_text().count("\n")
    high = _LINE_OVER * lines * found.get_fontsize() / _SIZE_OVER
    axes.set_title(axes.get_title(), pad=_OVER_LINES * text_scale() + high)


def _in_lines(axes: Axes, text: str) -> str:
    """Wrap a line over a panel to about the width of its column of panels."""
    place = axes.get_subplotspec()
    if place is None or GIVEN_AXES.get() is not None:
        return text
    inches = axes.figure.figure.get_figwidth() / place.get_gridspec().ncols
    return fill(text, int(_LETTERS_OVER * inches / text_scale()), break_long_words=False)


def _text_over_panel(axes: Axes, which: str) -> Any:
    return next((text for text in axes.texts if text.get_gid() == which), None)


def write_counts(figure: Figure, rows: pd.DataFrame) -> None:
    """Write on how many images a figure was measured: at its upper right, or over each panel.

    Where no panel has counted what it draws, as in a plot of a user's own, count the figure's
    `rows`. Where axes were given, their figure is the caller's, who has to say it.
    """
    if GIVEN_AXES.get() is not None:
        return
    if not counts_of_panels(figure):
        count_rows(rows, *figure.axes)
    counts = counts_of_panels(figure)
    if len({*counts.values()}) > 1:
        for axes, said in counts.items():
            write_count_over_panel(axes, said)
    else:
        _write_above(figure, say_counts(figure))


def write_count_over_panel(axes: Axes, said: str) -> None:
    """Write a count over a panel: below the lines that are there, else over its right corner."""
    if _text_over_panel(axes, _OVER):
        write_over_panel(axes, said)
    elif said:
        if axes.get_title():
            raise_title_above_note(axes)
        add_to_note(axes, said)


def raise_title_above_note(axes: Axes) -> None:
    axes.set_title(axes.get_title(), pad=_OVER_NOTE * text_scale())


def add_to_note(axes: Axes, said: str) -> None:
    """Add words to the note over the right corner of a panel."""
    note = _text_over_panel(axes, _CORNER) or axes.annotate("", (1, 1), **_NOTE, gid=_CORNER)
    note.set_text(", ".join(filter(None, (note.get_text(), said))))


def _write_above(figure: Figure, note: str) -> None:
    """Write a note at the upper right of a figure, and make room for it in its layout."""
    if not note:
        return
    layout = figure.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        height = figure.get_figheight()
        figure.set_figheight(height + _NOTE_HEIGHT)
        if figure.get_suptitle():
            # A title of the figure goes up to its edge, whatever the layout may use.
            figure.suptitle(f"\n{figure.get_suptitle()}")
        else:
            layout.set(rect=(0, 0, 1, height / (height + _NOTE_HEIGHT)))
    top = 1 - _OVER_WRITTEN / figure.get_figheight()
    written = figure.text(1, top, note, ha="right", va="top", color=GRAY, fontsize="x-small")
    written.set_in_layout(False)
