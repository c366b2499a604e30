"""The legend of a figure, which is collected while its panels are drawn, and other texts."""

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

from vitscope.claims.points import Published
from vitscope.drawing.figure import Member
from vitscope.drawing.looks import BAND_LABELS, BANDS, looks_of, text_scale
from vitscope.settings.snapshots import END

INTERVAL = "95 % interval"
_MOMENTS = {"init": "before training", "warmup": "end of warm-up", END: "end of training"}
# A figure has room for this many rows of a legend; each further one makes it taller (inches).
_ROWS, _ROW_HEIGHT = 2, 0.2
# Letters of an entry in an inch of the figure, and inches that a mark takes beside it.
_LETTERS, _MARK = 17, 0.3


class Legend:
    """The entries of what a figure shows, each look once; the interval and bands come last."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[Hashable, Artist]] = {}

    def expect(self, label: str) -> None:
        """Keep a place for an entry that may be added later."""
        self._entries.setdefault(label, {})

    def add(self, label: str, handle: Artist, look: Hashable = None) -> None:
        """Add an entry, or to one that is there another look, which stands beside the others."""
        self._entries.setdefault(label, {}).setdefault(look, handle)

    def add_line(self, label: str, style: Mapping[str, Any], look: Hashable = None) -> None:
        """Add a line, with its marker if it has one."""
        self.add(label, Line2D([], [], **style), look)

    def add_marker(self, label: str, style: Mapping[str, Any], look: Hashable = None) -> None:
        """Add a marker without its line."""
        self.add_line(label, {**style, "linestyle": ""}, look)

    def add_shade(self, label: str, color: str, alpha: float) -> None:
        """Add a shade, as around curves with intervals."""
        self.add(label, Patch(facecolor=color, alpha=alpha, lw=0), color)

    def add_models(self, members: Sequence[Member]) -> None:
        """Add an entry for each model, where models share a panel."""
        for member, look in zip(members, looks_of(members), strict=True):
            self.add_line(member.label, look.curve)

    def add_band(self, kind: str, **look: Any) -> None:
        """Add a kind of depth band, as it looks behind curves if nothing else is said."""
        self.add(BAND_LABELS[kind], Patch(**(look or BANDS[kind])))

    def entries(self) -> dict[str, Any]:
        """Return what each label stands for: a handle, or several side by side."""
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
        """Draw one legend for all panels, in axes of another figure `inside` what is drawn.

        It stands where a panel is missing, below the first axes of `free` and beside the second, if
        it fits; or below all, in as few rows as it can, for many of which the figure grows.
        """
        if not self.entries():
            return
        whole = figure.figure
        if inside is not None:
            inside.legend(**self._in_lines(whole.get_figwidth()))
            return
        if free is not None and self._draw_in(figure, free):
            return
        said = self._in_lines(whole.get_figwidth())
        count = len(said["labels"])
        for rows in range(1, count + 1):
            columns = ceil(count / rows)
            drawn = figure.legend(**said, loc="outside lower center", ncols=columns)
            if rows == count or drawn.get_window_extent().width <= figure.bbox.width:
                break
            drawn.remove()
        whole.set_figheight(whole.get_figheight() + _ROW_HEIGHT * max(0, rows - _ROWS))

    def _draw_in(self, figure: Figure | SubFigure, free: tuple[Axes, Axes]) -> bool:
        """Draw the legend in a free place if it fits; tell whether it does."""
        above, left = free
        wide, high = above.get_window_extent().width, left.get_window_extent().height
        place = blended_transform_factory(above.transAxes, left.transAxes)
        said = self._in_lines(wide / figure.figure.dpi - _MARK * text_scale())
        anchor = {"bbox_to_anchor": (0, 0, 1, 1), "bbox_transform": place}
        drawn = figure.legend(**said, loc="center", **anchor)
        drawn.set_in_layout(False)
        taken = drawn.get_window_extent()
        if taken.width <= wide and taken.height <= high:
            return True
        drawn.remove()
        return False

    def _in_lines(self, inches: float) -> dict[str, Any]:
        """Return the entries as arguments of a legend that is so many inches wide."""
        letters = max(1, int(_LETTERS * inches / text_scale()))
        entries = self.entries()
        return {
            "labels": [fill(label, letters, break_long_words=False) for label in entries],
            "handles": list(entries.values()),
            "handler_map": {tuple: HandlerTuple(ndivide=None, pad=0)},
        }


def percent(share: float, form: str = ".0f") -> str:
    return f"{100 * share:{form}} %"


def moment(snapshot: str) -> str:
    """Return what to call a moment of training: a study calls some by a short name."""
    return _MOMENTS.get(snapshot, snapshot)


def minus(text: str) -> str:
    """Return a number with the sign that axes have."""
    return text.replace("-", "\N{MINUS SIGN}")


def another_model(curves: Iterable[Published]) -> bool:
    """Return whether any published curve is of another model than the measured one."""
    return any(not curve.same_model for curve in curves)


def published_label(
    curves: Iterable[Published],
    *,
    others: str = "another model",
    axis: str = "right axis",
    always_own_axis: bool = False,
) -> str:
    """Return what the legend calls published values, and which axis those of `others` have."""
    apart = another_model(curves)
    whose = f", {others}" if apart else ""
    where = f" ({axis})" if apart or always_own_axis else ""
    return f"published{whose}{where}"
