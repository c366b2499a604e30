"""How families, models and depths look: colours, markers and dashes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.markers import MarkerStyle

from vitscope.drawing.figure import Member

# Of what belongs to no single model: axes behind, and marks in a legend that stand for all.
GRAY = "#595959"
# A line at zero.
ZERO: dict[str, Any] = {"color": "#a0a0a0", "lw": 0.6}

# What cut points are.
KIND_COLORS = {
    "stem": "#bdbdbd",
    "conv": "#1f77b4",
    "msa": "#d62728",
    "mlp": "#c9a227",
    "pool": "#2f7d5b",
    "head": GRAY,
}

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

# As in the paper, less the yellow end, which is too light on white.
_DEPTH_COLORS = matplotlib.colormaps["plasma"](np.linspace(0, 0.76, 256))


def look_of(family: str) -> Look:
    """Return the look of a family; one that is not known here has one by its name."""
    return _LOOKS.get(family) or _OTHER_LOOKS[crc32(family.encode()) % len(_OTHER_LOOKS)]


def _mixed(color: str, share: float) -> str:
    end = float(share > 0)
    red, green, blue = (part + abs(share) * (end - part) for part in to_rgb(color))
    return to_hex((red, green, blue))


def _variant(look: Look, nth: int) -> Look:
    # Where the shades begin again, they go with other dashes and markers than before.
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


def depth_colors() -> Colormap:
    return LinearSegmentedColormap.from_list("depth", _DEPTH_COLORS)


def depth_color(depth: float) -> str:
    """Return the colour of a normalized depth."""
    return to_hex(depth_colors()(float(depth)))
