"""Changes of a whole figure before it is saved, for slides: heavier lines, a dark background.

A neutral colour, such as that of text, becomes its counterpart: white the background, black almost
white. Other colours tell models and values apart, and stay. So do all colours of pictures and maps,
and of what is drawn on them.
"""

from typing import Any
from weakref import WeakSet

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.spines import Spine
from matplotlib.text import Annotation, Text

from vitscope.drawing.looks import is_dark, text_scale

# What white and black become on a dark background.
_BACKGROUND, _INK = 0.08, 0.94
# How far the parts of a neutral colour may differ.
_NEUTRAL = 0.06

_COLORS: dict[type[Artist], tuple[str, ...]] = {
    Text: ("color",),
    Line2D: ("color", "markeredgecolor", "markerfacecolor", "markerfacecoloralt"),
    Patch: ("facecolor", "edgecolor"),
    Collection: ("facecolor", "edgecolor"),
}
_WIDTHS: dict[type[Artist], tuple[str, ...]] = {
    Line2D: ("linewidth", "markersize", "markeredgewidth"),
    Patch: ("linewidth",),
    Collection: ("linewidth",),
}
_done = WeakSet[Figure]()


def restyle(figure: Figure) -> None:
    """Change a figure once: lines and marks grow with text that is large; a dark style inverts."""
    times = max(1.0, text_scale())
    if figure in _done or (times == 1 and not is_dark()):
        return
    _done.add(figure)
    for axis in figure.findobj(Axis):
        for which in ("major", "minor"):
            width = axis.get_tick_params(which).get("width")
            if width is not None:
                axis.set_tick_params(which, width=times * width)
            if is_dark():
                axis.set_tick_params(which, color=(_INK,) * 3, labelcolor=(_INK,) * 3)
    ticks = {part for tick in figure.findobj(Tick) for part in tick.findobj()}
    for artist in dict.fromkeys(each for each in figure.findobj() if each not in ticks):
        _change(artist, _WIDTHS, lambda value: times * value)
        if is_dark() and not _is_on_picture(artist):
            _change(artist, _COLORS, inverted)


def _change(artist: Artist, properties: dict[type[Artist], tuple[str, ...]], how: Any) -> None:
    for kind, names in properties.items():
        if not isinstance(artist, kind) or _is_map(artist):
            continue
        for name in names:
            found = getattr(artist, f"get_{name}")()
            several = isinstance(artist, Collection)
            getattr(artist, f"set_{name}")([*map(how, found)] if several else how(found))


def inverted(color: Any) -> Any:
    """Return the counterpart of a neutral colour on a dark background, or another as it is."""
    *parts, opacity = to_rgba(color)
    if not opacity or max(parts) - min(parts) > _NEUTRAL:
        return color
    return (*(_INK + (_BACKGROUND - _INK) * part for part in parts), opacity)


def _is_map(artist: Artist) -> bool:
    """Tell whether the colours of a collection are those of values, or shades of a surface."""
    if not isinstance(artist, Collection):
        return False
    return artist.get_array() is not None or hasattr(artist, "do_3d_projection")


def _is_on_picture(artist: Artist) -> bool:
    """Tell whether something is drawn at places of a picture or a map, whose colours stay."""
    axes = artist.axes
    if not isinstance(axes, Axes) or artist is axes.patch or isinstance(artist, Spine):
        return False
    if not (axes.images or any(isinstance(each, QuadMesh) for each in axes.collections)):
        return False
    if isinstance(artist, Annotation):
        return artist.xycoords == "data"
    at = artist.get_transform()
    return at.output_dims == 2 and any(at.contains_branch_seperately(axes.transData))
