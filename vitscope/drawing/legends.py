"""The legend of a figure, collected while its panels are drawn, and functions that format texts."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import ceil
from textwrap import fill
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import blended_transform_factory

from vitscope.claims.points import PublishedCurve
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import BAND_LABELS, BANDS, looks_of, text_scale
from vitscope.settings.snapshots import END

INTERVAL = "95 % interval"
_MOMENTS = {"init": "before training", "warmup": "end of warm-up", END: "end of training"}
# A figure has room for a legend of this many rows.
_ROWS = 2
_ROW_HEIGHT = 0.2  # inches that each further row adds to the figure
_LETTERS_PER_INCH = 17
_MARK_WIDTH = 0.3  # inches


class Legend:
    """The legend of a figure: labels with their looks; the interval and depth bands come last."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[Hashable, Artist]] = {}

    def expect(self, label: str) -> None:
        """Reserve the place of an entry that may be added later."""
        self._entries.setdefault(label, {})

    def add(self, label: str, handle: Artist, look: Hashable = None) -> None:
        """Add an entry; if the label exists, show a new `look` beside the looks that it has."""
        self._entries.setdefault(label, {}).setdefault(look, handle)

    def add_line(self, label: str, style: Mapping[str, Any], look: Hashable = None) -> None:
        """Add a line, with a marker if the style has one."""
        self.add(label, Line2D([], [], **style), look)

    def add_marker(self, label: str, style: Mapping[str, Any], look: Hashable = None) -> None:
        """Add a marker without its line."""
        self.add_line(label, {**style, "linestyle": ""}, look)

    def add_shade(self, label: str, color: str, alpha: float) -> None:
        """Add a shaded area, such as the one that shows the interval around a curve."""
        self.add(label, Patch(facecolor=color, alpha=alpha, lw=0), color)

    def add_models(self, members: Sequence[Member]) -> None:
        """Add an entry for each model; meant for a panel that several models share."""
        for member, look in zip(members, looks_of(members), strict=True):
            self.add_line(member.label, look.curve)

    def add_band(self, kind: str, **look: Any) -> None:
        """Add a kind of depth band, by default as it looks behind curves."""
        self.add(BAND_LABELS[kind], Patch(**(look or BANDS[kind])))

    def entries(self) -> dict[str, Any]:
        """Return for each label a tuple of its handles, which are drawn side by side."""
        last = (INTERVAL, *BAND_LABELS.values())
        added = {label: tuple(looks.values()) for label, looks in self._entries.items() if looks}
        labels = [label for label in added if label not in last]
        return {label: added[label] for label in (*labels, *last) if label in added}

    def draw(
        self,
        figure: Figure | SubFigure,
        inside: Axes | None = None,
        free: tuple[Axes, Axes] | None = None,
    ) -> None:
        """Draw one legend for all panels, in the axes `inside` if given.

        Otherwise, if it fits, it takes the place of a missing panel, below `free[0]` and to the
        right of `free[1]`. Failing that, it stands below all panels in as few rows as possible, and
        many rows make the figure higher.
        """
        if not self.entries():
            return
        whole = figure.figure
        if inside is not None:
            inside.legend(**self._arguments_for_width(whole.get_figwidth()))
            return
        if free is not None and self._draw_at_missing_panel(figure, free):
            return
        said = self._arguments_for_width(whole.get_figwidth())
        count = len(said["labels"])
        for rows in range(1, count + 1):
            columns = ceil(count / rows)
            drawn = figure.legend(**said, loc="outside lower center", ncols=columns)
            if rows == count or drawn.get_window_extent().width <= figure.bbox.width:
                break
            drawn.remove()
        whole.set_figheight(whole.get_figheight() + _ROW_HEIGHT * max(0, rows - _ROWS))

    def _draw_at_missing_panel(self, figure: Figure | SubFigure, free: tuple[Axes, Axes]) -> bool:
        """Draw the legend in place of a missing panel if it fits; return whether it does."""
        above, left = free
        wide, high = above.get_window_extent().width, left.get_window_extent().height
        place = blended_transform_factory(above.transAxes, left.transAxes)
        said = self._arguments_for_width(wide / figure.figure.dpi - _MARK_WIDTH * text_scale())
        anchor = {"bbox_to_anchor": (0, 0, 1, 1), "bbox_transform": place}
        drawn = figure.legend(**said, loc="center", **anchor)
        drawn.set_in_layout(False)
        taken = drawn.get_window_extent()
        if taken.width <= wide and taken.height <= high:
            return True
        drawn.remove()
        return False

    def _arguments_for_width(self, inches: float) -> dict[str, Any]:
        """Return the arguments of a legend, with labels wrapped to a width in inches."""
        letters = max(1, int(_LETTERS_PER_INCH * inches / text_scale()))
        entries = self.entries()
        return {
            "labels": [fill(label, letters, break_long_words=False) for label in entries],
            "handles": list(entries.values()),
            "handler_map": {tuple: HandlerTuple(ndivide=None, pad=0)},
        }


def percent(share: float, form: str = ".0f") -> str:
    return f"{100 * share:{form}} %"


def moment(snapshot: str) -> str:
    """Return the name of a snapshot for readers, such as "before training" for "init"."""
    return _MOMENTS.get(snapshot, snapshot)


def minus(text: str) -> str:
    """Return a number as text, with a minus sign in place of the hyphen."""
    return text.replace("-", "\N{MINUS SIGN}")


def published_legend_label(
    curves: Iterable[PublishedCurve],
    *,
    others: str = "another model",
    where: str = "own panel",
) -> str:
    """Return the label of published values; if any are of `others`, it says so, and `where`."""
    same = all(curve.same_model for curve in curves)
    return "published" if same else f"published, {others} ({where})"
