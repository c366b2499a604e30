"""How figures are saved: the style, the formats, and what a file says about its origin."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import matplotlib.style
from matplotlib.axis import Axis
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import findSystemFonts, fontManager
from matplotlib.text import Text
from matplotlib.ticker import LogFormatterMathtext
from matplotlib.transforms import Bbox

from vitscope import __version__
from vitscope.drawing.looks import with_background, with_palette
from vitscope.drawing.restyle import restyle
from vitscope.errors import VitscopeError, nearest
from vitscope.files.whole import atomic_path

# The smallest text of a figure, in points, and the smallest exponent.
SMALLEST, RAISED = 6.0, 5.0
# The smallest labels with exponents, which matplotlib draws at 0.7 of the size of the label.
_WITH_RAISED = RAISED / 0.7
_SIZES = (
    "font.size",
    "figure.labelsize",
    "legend.fontsize",
    "axes.titlesize",
    "axes.labelsize",
    "xtick.labelsize",
    "ytick.labelsize",
)
# Distances that keep the tick labels of two axes apart in the corner where the axes meet.
_TICKS = ("xtick.major.pad", "ytick.major.pad", "xtick.major.size", "ytick.major.size")


@contextmanager
def style(path: Path | str, own: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw and save in the style of a file, changed by `own`, without settings of this machine."""
    if not Path(path).is_file():
        raise VitscopeError(
            f"There is no style file {path}: restore vitscope/drawing/style.mplstyle."
        )
    own, rules = own or {}, cast("dict[str, Any]", matplotlib.rcParams)
    with (
        matplotlib.style.context(str(path), after_reset=True),
        with_palette(own.get("palette", {})),
        with_background(own.get("background", "light")),
    ):
        if "width" in own:
            rules["figure.figsize"] = own["width"], rules["figure.figsize"][1]
        if "font_size" in own:
            times = own["font_size"] / rules["font.size"]
            # Labels stop shrinking, and so does what keeps them apart.
            apart = max(times, SMALLEST / rules["xtick.labelsize"])
            rules.update({name: max(SMALLEST, times * rules[name]) for name in _SIZES})
            rules.update({name: apart * rules[name] for name in _TICKS})
        if "font" in own and (font := own["font"]) not in rules["font.sans-serif"]:
            check_font("style.font", font)
            rules["font.sans-serif"] = [font, *rules["font.sans-serif"]]
            rules |= {"mathtext.fontset": "custom", "mathtext.rm": font}
        yield


def check_font(where: str, name: str) -> None:
    if name not in _known_fonts():
        _add_fonts_since_indexed()
    if name not in (known := _known_fonts()):
        raise VitscopeError(
            f"{where}: found '{name}', allowed: a family of fonts that matplotlib finds on this "
            f"machine.{nearest(name, known)}"
        )


def _known_fonts() -> set[str]:
    return {font.name for font in fontManager.ttflist}


def _add_fonts_since_indexed() -> None:
    """Add the fonts of this machine that were installed since matplotlib listed them."""
    listed = {font.fname for font in fontManager.ttflist}
    for path in sorted({*findSystemFonts()} - listed):
        # A file that is no font, or of a kind that matplotlib does not read, stays out.
        with suppress(OSError, RuntimeError, ValueError):
            fontManager.addfont(path)


# Maps a format to the metadata key that holds all facts, and to the key of the date, which is left
# out. All facts share one standard key, since viewers do not show keys of our own.
_KEYS = {"pdf": ("Subject", "CreationDate"), "svg": ("Description", "Date")}
FORMATS = (*_KEYS, "png")

# The solver of layouts goes by addresses of memory: its last digits, which names of clip paths are
# made of, are others in another process.
_DIGITS = 6


def _metadata_for_saving(suffix: str, title: str, facts: Mapping[str, str]) -> dict[str, Any]:
    maker = f"vitscope {__version__}"
    if suffix in _KEYS:
        about, date = _KEYS[suffix]
        said = "; ".join(f"{key}: {value}" for key, value in facts.items())
        return {"Title": title, about: said, "Creator": maker, date: None}
    # The keys of a PNG have at most 79 characters, in Latin-1; its values may be any text.
    keys = [key.encode("latin-1", "backslashreplace").decode("latin-1")[:79] for key in facts]
    entries = dict(zip(keys, facts.values(), strict=True))
    return {"Title": title, **entries, "Software": maker}


def read_facts(svg: Path | str) -> dict[str, str]:
    """Return the facts that the metadata of a saved svg have."""
    about, _ = _KEYS["svg"]
    for _, element in ElementTree.iterparse(svg):
        if element.tag.endswith(f"}}{about.lower()}"):
            pairs = (each.partition(": ") for each in (element.text or "").split("; "))
            return {key: value for key, _, value in pairs}
    return {}


def enlarge_text_for_saving(figure: Figure) -> None:
    """Enlarge text that is too small to read, and the powers of ten along an axis."""
    for axis in figure.findobj(Axis):
        size = axis.get_tick_params().get("labelsize", 0)
        if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
            axis.set_tick_params(labelsize=max(size, _WITH_RAISED))
    for text in figure.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))


def _lay_out_for_saving(figure: Figure) -> None:
    """Lay out a figure once for all formats, at the dpi of files, as letters take whole dots."""
    restyle(figure)
    enlarge_text_for_saving(figure)
    if figure.get_layout_engine() is not None:
        shown = figure.dpi
        figure.set_dpi(matplotlib.rcParams["savefig.dpi"])
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        figure.set_dpi(shown)
        _round_places(figure)


def _round_places(figure: Figure | SubFigure) -> None:
    """Round the places of panels and of groups of panels, as a solver has found them."""
    for group in figure.subfigs:
        place = group.bbox_relative
        place.p0, place.p1 = place.p0.round(_DIGITS), place.p1.round(_DIGITS)
        _round_places(group)
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position().get_points().round(_DIGITS)))


def save(
    figure: Figure, path: Path | str, title: str, facts: Mapping[str, str], shows: str = ""
) -> None:
    """Save a figure as pdf, svg or png, with `facts` about its origin as metadata.

    An svg also describes what it `shows`. The same figure gives the same bytes: neither a date nor
    a path goes into the file.
    """
    suffix = Path(path).suffix.removeprefix(".")
    if suffix not in FORMATS:
        raise VitscopeError(f"Cannot save {path}: a figure is one of {', '.join(FORMATS)}.")
    # Draw in memory first: on a full disk, matplotlib would end with an error of its own.
    drawn = BytesIO()
    with warnings.catch_warnings():
        # Turn this warning into an error: matplotlib would let panels and text overlap.
        warnings.filterwarnings("error", ".*layout not applied", UserWarning)
        try:
            _lay_out_for_saving(figure)
            figure.savefig(
                drawn, format=suffix, metadata=_metadata_for_saving(suffix, title, facts)
            )
        except UserWarning as error:
            width, height = figure.get_size_inches()
            raise VitscopeError(
                f"Cannot save {path}: its panels and their text do not fit into {width:g}x"
                f"{height:g} inches: draw fewer models in it, or give them shorter labels."
            ) from error
    content = drawn.getvalue()
    if suffix == "svg" and shows:
        described = f"</title>\n <desc>{escape(shows)}</desc>".encode()
        content = content.replace(b"</title>", described, 1)
    with atomic_path(path) as partial:
        partial.write_bytes(content)
