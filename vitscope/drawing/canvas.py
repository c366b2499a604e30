"""What all figures share: the style, the look of each family, bands, panels, legend, saving."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from math import ceil
from pathlib import Path
from typing import Any
from zlib import crc32

import matplotlib
import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from vitscope import __version__
from vitscope.drawing.kinds import Member
from vitscope.errors import VitscopeError
from vitscope.files.whole import atomic_path
from vitscope.measures.depth_bands import Band

# Points: the edge of markers that are not filled.
_EDGE = 0.7


@dataclass(frozen=True)
class Look:
    """The colour and the marker of a family; `size` evens out what markers seem to weigh.

    Models of one look that share a panel have dashes and a fill of their own, see `looks_of`.
    """

    color: str
    marker: str
    size: float = 1.0
    dashes: Any = "-"
    half_filled: bool = False

    @property
    def line(self) -> dict[str, Any]:
        """The colour and the marker as arguments of a line; within `style`."""
        size = self.size * matplotlib.rcParams["lines.markersize"]
        style = {"color": self.color, "marker": self.marker, "markersize": size}
        if not self.half_filled:
            return style
        # Joined as usual, the tips of half a diamond would stick out.
        half = MarkerStyle(self.marker, fillstyle="left", joinstyle="round")
        return style | {"marker": half, "markerfacecoloralt": "white", "markeredgewidth": _EDGE}

    @property
    def hollow(self) -> dict[str, Any]:
        """The same with hollow markers, as published values have them."""
        full = replace(self, half_filled=False).line
        return full | {"markerfacecolor": "white", "markeredgewidth": _EDGE}

    @property
    def stroke(self) -> dict[str, Any]:
        """The colour and the dashes of a line that has no markers."""
        return {"color": self.color, "linestyle": self.dashes}

    @property
    def curve(self) -> dict[str, Any]:
        """The whole look, of a line with markers."""
        return self.line | self.stroke


# ResNet and ViT look as in the paper. Two architectures share no marker, so that none needs colour.
_LOOKS = {
    "resnet": Look("#1f77b4", "D"),
    "timm_resnet": Look("#1f77b4", "D"),
    "vit": Look("#d62728", "o"),
    "pit": Look("#c27800", "^", 1.15),
    "swin": Look("#00866b", "s"),
    "alternet": Look("#7b4fa3", "P", 1.4),
    "mixer": Look("#4d4d4d", "v", 1.15),
    "convnext": Look("#0f9bd0", "X", 1.3),
}
_OTHER_LOOKS = (
    Look("#8c564b", "p"),
    Look("#b5498f", "h"),
    Look("#6b7d00", "<", 1.15),
    Look("#3d5a80", ">", 1.15),
)

# What tells models of one look from each other: the share of white in the colour, of black if below
# 0, and the dashes. None of these is dotted: published curves are.
_SHADES = (0, 0.35, -0.4, 0.6, -0.7, 0.18)
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (4, 1.4)),
    (0, (4, 1.2, 1, 1.2)),
    (0, (1.8, 0.9)),
    (0, (4, 1.2, 1, 1.2, 1, 1.2)),
    (0, (7, 1.4)),
)

_MUTED = "#595959"
_BAND_COLORS = {"msa": "#7f7f7f", "subsampling": "#1f77b4"}
_BAND_LABELS = {"msa": "MSA", "subsampling": "subsampling"}
_BAND_ALPHA = 0.18

# As in the paper, less the yellow end, which is too light on white.
_DEPTH_COLORS = matplotlib.colormaps["plasma"](np.linspace(0, 0.76, 256))

# Inches: one panel fills a column, two the text width of the paper, three or four a full page.
_WIDTHS = {1: 3.25, 2: 5.5, 3: 7.0, 4: 7.0}
_ROW_HEIGHT = 1.8
_LEGEND_HEIGHT = 0.2
# Of the width of a figure, what is left between its panels where they have axes behind them.
_SPACE_BEHIND = 0.04


def look_of(family: str) -> Look:
    """Return the look of a family; one that is not known here has one by its name."""
    return _LOOKS.get(family) or _OTHER_LOOKS[crc32(family.encode()) % len(_OTHER_LOOKS)]


def _mixed(color: str, share: float) -> str:
    end = float(share > 0)
    red, green, blue = (part + abs(share) * (end - part) for part in to_rgb(color))
    return to_hex((red, green, blue))


def _variant(look: Look, nth: int) -> Look:
    # A second round of shades meets other kinds of lines and markers than the first.
    turn = nth + nth // len(_SHADES)
    return replace(
        look,
        color=_mixed(look.color, _SHADES[nth % len(_SHADES)]),
        dashes=_DASHES[turn % len(_DASHES)],
        half_filled=turn % 2 == 1,
    )


def looks_of(members: Sequence[Member]) -> list[Look]:
    """Return the looks of members that share a panel: families that look alike are told apart.

    Of one look, 36 lines differ, 12 markers, and 6 colours.
    """
    seen: Counter[Look] = Counter()
    looks = []
    for member in members:
        look = look_of(member.family)
        looks.append(_variant(look, seen[look]))
        seen[look] += 1
    return looks


def rows_of(
    name: str, table: pd.DataFrame, model: str, order: Sequence[str] = (), snapshot: str = ""
) -> pd.DataFrame:
    """Return the rows of a model in the table of this name, of one snapshot and in order."""
    chosen = table["model"] == model
    if snapshot:
        chosen &= table["snapshot"] == snapshot
    rows = table[chosen]
    if rows.empty:
        at = f" at '{snapshot}'" if snapshot else ""
        raise VitscopeError(
            f"The {name} table has no model '{model}'{at}: delete the table and run again."
        )
    return rows.sort_values(list(order), ignore_index=True) if order else rows


@contextmanager
def style(path: Path | str) -> Iterator[None]:
    """Draw and save with the style file, whatever matplotlib's settings on this machine are."""
    if not Path(path).is_file():
        raise VitscopeError(f"There is no style file {path}: restore resources/style.mplstyle.")
    with matplotlib.style.context(str(path), after_reset=True):
        yield


@dataclass(frozen=True)
class Panels:
    """A figure and its axes, one for each model; those at an outer edge carry the labels.

    Axes that were removed from the figure keep their place.
    """

    figure: Figure
    axes: list[Axes]
    columns: int

    def label(self, x: str, y: str) -> None:
        """Label the x axis below each column and the y axis left of each row.

        A panel has a label of its own where another stands to the left, that of an axis behind.
        """
        labelled = set()
        for position, axes in enumerate(self.axes):
            if axes not in self.figure.axes:
                continue
            if position + self.columns >= len(self.axes):
                axes.set_xlabel(x)
            row, column = divmod(position, self.columns)
            if row not in labelled or (column and _has_axis_behind(self.axes[position - 1])):
                axes.set_ylabel(y)
            labelled.add(row)
        self.figure.align_ylabels()


def panels(count: int) -> Panels:
    """Return a figure with `count` panels, at most three side by side."""
    columns = 2 if count == 4 else min(count, 3)
    rows = ceil(count / columns)
    figure = Figure(figsize=(_WIDTHS[columns], rows * _ROW_HEIGHT + _LEGEND_HEIGHT))
    grid: list[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in grid[count:]:
        unused.remove()
    for axes in grid[:count]:
        axes.yaxis.set_major_locator(_ticks())
    return Panels(figure, grid[:count], columns)


def stacked_panels(count: int, rows: int) -> list[Panels]:
    """Return `rows` kinds of panels, one over the other, `count` of each in one figure.

    At most four stand side by side; further ones follow below, again all kinds of them.
    """
    groups = ceil(count / 4)
    columns = ceil(count / groups)
    height = groups * rows * _ROW_HEIGHT + _LEGEND_HEIGHT
    figure = Figure(figsize=(_WIDTHS[columns], height))
    grid = figure.subplots(groups * rows, columns, squeeze=False).reshape(groups, rows, columns)
    kinds: list[list[Axes]] = [grid[:, row].ravel().tolist() for row in range(rows)]
    for kind in kinds:
        for unused in kind[count:]:
            unused.remove()
        for axes in kind[:count]:
            axes.yaxis.set_major_locator(_ticks())
    return [Panels(figure, kind[:count], columns) for kind in kinds]


def _depth_colors() -> Colormap:
    return LinearSegmentedColormap.from_list("depth", _DEPTH_COLORS)


def depth_color(depth: float) -> str:
    """Return the colour of a normalized depth."""
    return to_hex(_depth_colors()(float(depth)))


def depth_bar(figure: Figure, axes: Sequence[Axes]) -> None:
    """Put the scale of the colours of depth to the right of some panels."""
    colors = ScalarMappable(Normalize(0, 1), _depth_colors())
    bar = figure.colorbar(colors, ax=list(axes), aspect=30, pad=0.02, ticks=np.linspace(0, 1, 6))
    bar.set_label("Normalized depth")
    bar.outline.set_linewidth(0.6)


def axis_behind(axes: Axes, label: str) -> Axes:
    """Return a second y axis, on the right and in gray, whose content lies behind that of `axes`.

    It is for values that share no scale with those of `axes`, and is apart from the next panel.
    """
    behind = axes.twinx()
    axes.set_zorder(behind.get_zorder() + 1)
    axes.patch.set_visible(False)
    behind.yaxis.set_major_locator(_ticks())
    behind.set_ylabel(label, color=_MUTED)
    layout = behind.figure.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):
        layout.set(wspace=_SPACE_BEHIND)
    behind.tick_params(axis="y", colors=_MUTED)
    behind.spines["right"].set(visible=True, color=_MUTED)
    return behind


def _has_axis_behind(axes: Axes) -> bool:
    twins = axes.get_shared_x_axes().get_siblings(axes)
    return any(twin.yaxis.get_label_position() == "right" for twin in twins)


def axis_above(axes: Axes) -> Axes:
    """Return a second x axis, above and in gray, as `axis_behind` does on the right."""
    behind = axes.twiny()
    axes.set_zorder(behind.get_zorder() + 1)
    axes.patch.set_visible(False)
    behind.xaxis.label.set_color(_MUTED)
    behind.tick_params(axis="x", colors=_MUTED)
    behind.spines["top"].set(visible=True, color=_MUTED)
    return behind


def _ticks() -> MaxNLocator:
    return MaxNLocator(nbins=6, steps=[1, 2, 5, 10], min_n_ticks=4)


def draw_bands(axes: Axes, bands: Iterable[Band]) -> None:
    """Shade the bands behind everything else."""
    for band in bands:
        axes.axvspan(
            band.start, band.end, color=_BAND_COLORS[band.kind], alpha=_BAND_ALPHA, lw=0, zorder=0
        )


def band_color(kind: str) -> str:
    """Return the colour of a kind of band where it marks something without being transparent."""
    return _BAND_COLORS[kind]


def band_handles(bands: Iterable[Band]) -> dict[str, Artist]:
    """Return a legend entry for each kind of band that occurs."""
    occurring = {band.kind for band in bands}
    return {
        label: Patch(facecolor=_BAND_COLORS[kind], alpha=_BAND_ALPHA, lw=0)
        for kind, label in _BAND_LABELS.items()
        if kind in occurring
    }


def legend(panels: Panels, entries: Mapping[str, Any]) -> None:
    """Put one legend for all panels below them, in as few rows as it has room in.

    An entry is what matplotlib accepts as a handle; a tuple of them stands side by side.
    """
    for rows in range(1, len(entries) + 1):
        drawn = panels.figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=ceil(len(entries) / rows),
            handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
        )
        if rows == len(entries) or drawn.get_window_extent().width <= panels.figure.bbox.width:
            break
        drawn.remove()


def _pdf(title: str, facts: Mapping[str, str]) -> dict[str, Any]:
    # A PDF has no keys of one's own among those that every reader shows.
    subject = "; ".join(f"{key}: {value}" for key, value in facts.items())
    creator = f"vitscope {__version__}"
    return {"Title": title, "Subject": subject, "Creator": creator, "CreationDate": None}


def _svg(title: str, facts: Mapping[str, str]) -> dict[str, Any]:
    description = "; ".join(f"{key}: {value}" for key, value in facts.items())
    creator = f"vitscope {__version__}"
    return {"Title": title, "Description": description, "Creator": creator, "Date": None}


def _png(title: str, facts: Mapping[str, str]) -> dict[str, Any]:
    # The keys of a PNG, other than its values, are short and in Latin-1.
    keys = [key.encode("latin-1", "backslashreplace").decode("latin-1")[:79] for key in facts]
    told = dict(zip(keys, facts.values(), strict=True))
    return {"Title": title, **told, "Software": f"vitscope {__version__}"}


def literal(text: str) -> str:
    """Return a text as matplotlib shows it as it is: none of it is taken for a formula."""
    return text.replace("$", r"\$")


_METADATA = {"pdf": _pdf, "svg": _svg, "png": _png}
FORMATS = tuple(_METADATA)


def save(figure: Figure, path: Path | str, title: str, facts: Mapping[str, str]) -> None:
    """Save a figure as pdf, svg or png, and in it what it was made from; within `style`.

    The same figure gives the same bytes: neither a date nor a path goes into the file.
    """
    suffix = Path(path).suffix.removeprefix(".")
    if suffix not in _METADATA:
        raise VitscopeError(f"Cannot save {path}: a figure is one of {', '.join(FORMATS)}.")
    # In memory first: where the disk is full, matplotlib ends in an error of its own.
    drawn = BytesIO()
    figure.savefig(drawn, format=suffix, metadata=_METADATA[suffix](title, facts))
    with atomic_path(path) as partial:
        partial.write_bytes(drawn.getvalue())
