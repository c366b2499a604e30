"""The looks of everything drawn: colours, shades, markers, dashes, and widths in points."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from zlib import crc32

import matplotlib
import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.markers import MarkerStyle

from vitscope.drawing.figure import Member, with_variable

# The colour of what belongs to no single model: second axes, and marks in a legend for all models.
GRAY = "#595959"
PALE = "#b3b3b3"  # bars of shares, behind the curves of models
SHADOW = "#808080"  # stands in a legend for lines that are white on a dark picture

# A legend entry that stands for the curves of all models.
OF_ALL: dict[str, Any] = {"color": GRAY, "marker": "o"}

# A curve in a small sketch.
SKETCHED: dict[str, Any] = {"markersize": 2, "linewidth": 0.7}
# Points measured on a few tokens, behind curves of all tokens.
FEW: dict[str, Any] = {"markersize": 2.4}

# Widths of lines.
THREAD = 0.4  # edges between the faces of a surface
HAIR = 0.5
THIN = 0.7
CURVE = 0.8  # one curve among many

HOLLOW_OF_ALL = dict(OF_ALL, markerfacecolor="white", markeredgecolor=GRAY, markeredgewidth=CURVE)

# A line at zero.
ZERO: dict[str, Any] = {"color": "#a0a0a0", "linewidth": 0.6}
# A line that curves or points are compared with.
REFERENCE: dict[str, Any] = {"color": GRAY, "linestyle": (0, (4, 2)), "linewidth": THIN}
DIAGONAL = {**REFERENCE, "color": "black"}
# A line at the epoch of a snapshot.
MOMENT: dict[str, Any] = {"color": GRAY, "linestyle": (0, (1, 1.5)), "linewidth": HAIR}
# Curves without markers.
PLAIN: dict[str, Any] = {"linestyle": "-", "marker": "", "linewidth": 1.0}
DASHED = {**PLAIN, "linestyle": (0, (4, 1.4))}
# Published curves.
DOTTED: dict[str, Any] = {"linestyle": ":", "linewidth": THIN}
# The background of every second group of rows.
EVERY_SECOND: dict[str, Any] = {"color": "#f0f0f0", "linewidth": 0}
GRID: dict[str, Any] = {"color": "#d0d0d0", "linewidth": HAIR}

# How opaque shades are.
INTERVAL_ALPHA = 0.25
QUARTILES_ALPHA = 0.35
RANGE_ALPHA = 0.15  # the range from the lowest to the highest value
BAR_ALPHA = 0.45
INTERVAL_WIDTH = 1.4
# The range of what a point is the mean of; an interval is thinner.
RANGE_BAR: dict[str, Any] = {"color": GRAY, "alpha": QUARTILES_ALPHA, "linewidth": 6}

# Cells without a value.
UNDEFINED: dict[str, Any] = {"facecolor": "#e6e6e6", "edgecolor": "#8c8c8c", "hatch": "//////"}
UNDEFINED["linewidth"] = 0
# Cells with a value that chance explains.
BY_CHANCE: dict[str, Any] = {"marker": "o", "markersize": 1.8, "markeredgewidth": 0.3}
BY_CHANCE |= {"markerfacecolor": "white", "markeredgecolor": "#595959", "linestyle": ""}
# The open part of a bar.
HATCHED: dict[str, Any] = {"facecolor": "none", "linewidth": HAIR, "hatch": "//////"}

# A single head; in its panel, it is less opaque than in the legend.
HEAD: dict[str, Any] = {"marker": "o", "markersize": 2.2, "markeredgewidth": 0, "linestyle": ""}
HEAD_ALPHA = 0.55
NODE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "markeredgewidth": 0.8}
# A tick for each value of a strip plot.
TICK: dict[str, Any] = {"marker": "|", "markersize": 5, "markeredgewidth": 0.8, "linestyle": ""}
TICK["alpha"] = 0.55
# A value at the foot of a panel.
FOOT_MARK: dict[str, Any] = {**TICK, "markersize": 3, "markeredgewidth": HAIR, "alpha": 1}
# An interval in a legend.
INTERVAL_BAR: dict[str, Any] = {"marker": "|", "markersize": 7, "markeredgewidth": CURVE}
# An interval on a bar, whatever the colour of the bar.
INTERVAL_ON_BAR: dict[str, Any] = {"color": "#202020", "linewidth": CURVE}
# A step of a build-up.
STEP: dict[str, Any] = {"marker": "o", "markersize": 4.2, "markeredgewidth": 0.9}

# Marks on the path of a network through training.
_MARK: dict[str, Any] = {"linestyle": "", "color": "black", "clip_on": False}
START = dict(_MARK, marker="o", markersize=5, markerfacecolor="white", markeredgewidth=0.9)
END = dict(_MARK, marker="*", markersize=8, markeredgecolor="white", markeredgewidth=THREAD)
END_OF_WARMUP = dict(START, markersize=7.5, markerfacecolor="none", markeredgewidth=THIN)

# Colour maps.
MAP_COLORS = "inferno"  # maps of shares, such as attention
SIMILARITY_COLORS = "magma"
POSITION_COLORS = "viridis"
SIGNED_COLORS = "RdBu_r"
LOSS_COLORS = "plasma"
# The opacity of a map over a picture, in figures, where the map has its highest value.
MOST_OPAQUE = 0.9
# The opacity of a map over a picture, in videos, everywhere.
OVERLAY_ALPHA = 0.55
# The position of a query, on a map of its attention.
CROSS: dict[str, Any] = {"marker": "x", "markersize": 4, "markeredgewidth": 1.2}
QUERY_COLORS = ("#4cc9f0", "#f72585", "#b5e48c", "#ffd166")
# The trained weights, on a map of the loss.
CENTRE: dict[str, Any] = {"marker": "+", "markersize": 4, "markeredgewidth": THIN}
CENTRE |= {"color": "white", "linestyle": ""}
# Networks on a map of the loss, and their names.
NETWORK: dict[str, Any] = {"s": 20, "edgecolors": "white", "linewidths": CURVE, "zorder": 3}
NETWORK_NAME: dict[str, Any] = {"fontsize": "x-small", "color": "black"}
NETWORK_NAME["bbox"] = {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.8}
# The beginning of a stage, on a map of similarity.
BOUNDARY: dict[str, Any] = {"color": "white", "linewidth": 0.6}
# Squares that contain most of a map.
INNER_SQUARE: dict[str, Any] = {"color": "#56b4e9", "linewidth": 0.9, "linestyle": "-"}
OUTER_SQUARE = {**INNER_SQUARE, "color": "white", "linestyle": (0, (2.5, 1.5))}

_PURPLE, _BROWN, _OLIVE = "#5e3c99", "#b35806", "#a6a600"
# Bands of frequency.
FREQUENCY_BANDS: dict[str, dict[str, Any]] = {
    "low": {"color": _PURPLE, "marker": "o"},
    "middle": {"color": _BROWN, "marker": "s"},
    "high": {"color": _OLIVE, "marker": "^"},
}
# The cues that images are classified by, from dark to light.
CUE_COLORS = {"shape": "#2f4858", "texture": "#e0b050", "neither": "#e8e8e8"}


class VerdictLook(NamedTuple):
    """The mark of a verdict, bold for a recipe, plain for one network; and its meaning."""

    mark: str
    color: str
    meaning: str
    weight: str = "normal"


VERDICT_LOOKS = {
    "yes": VerdictLook("\N{HEAVY CHECK MARK}", "#1b5e43", "holds, of the recipe", "bold"),
    "no": VerdictLook("\N{HEAVY BALLOT X}", "#9c3a25", "fails, of the recipe", "bold"),
    "yes, in this network": VerdictLook("\N{CHECK MARK}", "#1b5e43", "holds in this network"),
    "no, in this network": VerdictLook("\N{BALLOT X}", "#9c3a25", "fails in this network"),
    "open": VerdictLook("?", "#666666", "open"),
    "yes, without an interval": VerdictLook(
        "(\N{CHECK MARK})", "#1b5e43", "holds, without an interval"
    ),
    "no, without an interval": VerdictLook(
        "(\N{BALLOT X})", "#9c3a25", "fails, without an interval"
    ),
}

# Depth bands as opaque marks along an axis.
BAND_COLORS = {"msa": "#7f7f7f", "subsampling": "#a6bddb"}
BAND_LABELS = {"msa": "MSA", "subsampling": "subsampling"}
# Subsampling is hatched, so that nobody takes it for an interval.
SUBSAMPLING_HATCH: dict[str, Any] = {"facecolor": "none", "edgecolor": PALE, "hatch": "//////"}
SUBSAMPLING_HATCH["lw"] = 0
# Depth bands behind curves.
BANDS: dict[str, dict[str, Any]] = {
    "msa": {"facecolor": BAND_COLORS["msa"], "alpha": 0.18, "lw": 0},
    "subsampling": SUBSAMPLING_HATCH,
}

# Kinds of cut points, in the colours of the depth bands; Convs are white, as in the paper.
KIND_COLORS = {
    "stem": "#303030",
    "conv": "white",
    **BAND_COLORS,
    "mlp": "#c9a227",
    "mixing": "#d98c5f",
    "parallel": "#9467bd",
    "ssm": "#8c564b",
    "pool": "#2f7d5b",
}
# The labels of kinds, in the order of a legend.
LABELS_OF_KINDS = {
    "stem": "stem",
    "conv": "conv",
    **BAND_LABELS,
    "mlp": "MLP",
    "mixing": "mixing of positions",
    "parallel": "MSA and others",
    "ssm": "recurrence",
    "pool": "pool",
}
KIND_EDGE: dict[str, Any] = {"edgecolor": GRAY, "linewidth": THREAD}

SHARE_STYLES: dict[str, dict[str, Any]] = {
    "msa": {"color": BAND_COLORS["msa"], "marker": "o", "markersize": 3.5},
    "mlp": {"color": KIND_COLORS["mlp"], "marker": "v", "markersize": 3.5},
    "conv": {"color": _PURPLE, "marker": "D", "markersize": 3.5},
}

# The styles that probes share.
_READ: list[dict[str, Any]] = [
    {"color": _PURPLE, "marker": "o", "markersize": 3},
    {"color": _BROWN, "marker": "s", "markersize": 3},
    {"color": _OLIVE, "marker": "^", "markersize": 3},
]
# The look of a probe depends on the tokens from which it reads the class, or on what it reads from
# a single token.
PROBE_STYLES = dict(zip(("mean token", "prefix token", "single token"), _READ, strict=True))
PROBE_STYLES |= dict(zip(("position", "pixels"), _READ, strict=False))

_EDGE = 0.7  # the edge of hollow markers
HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": _EDGE}
HOLLOW_POINTS = {**HOLLOW, "linestyle": ""}


@dataclass(frozen=True)
class Look:
    """The look of a family; `size` is a factor that makes all markers look equally heavy."""

    color: str
    marker: str
    size: float = 1.0
    dashes: Any = "-"
    half_filled: bool = False

    @property
    def line(self) -> dict[str, Any]:
        """The colour and the marker, as arguments of a line; use it within `saving.style`."""
        size = self.size * matplotlib.rcParams["lines.markersize"]
        style = {"color": self.color, "marker": self.marker, "markersize": size}
        if not self.half_filled:
            return style
        # Round the corners, since the tips of half a diamond would stick out.
        half = MarkerStyle(self.marker, fillstyle="left", joinstyle="round")
        return style | {"marker": half, "markerfacecoloralt": "white", "markeredgewidth": _EDGE}

    @property
    def hollow(self) -> dict[str, Any]:
        """The arguments of `line`, but with a hollow marker, as for published values."""
        return replace(self, half_filled=False).line | HOLLOW

    @property
    def stroke(self) -> dict[str, Any]:
        """The colour and the dashes of a line that has no markers."""
        return {"color": self.color, "linestyle": self.dashes}

    @property
    def curve(self) -> dict[str, Any]:
        """The colour, the marker and the dashes, for a line with markers."""
        return self.line | self.stroke


# ResNet and ViT look as in the paper. The others have the colours of Okabe and Ito, which
# colour-blind readers can tell apart. Each architecture has its own marker, so that nobody has to
# rely on colours.
_LOOKS = {
    "resnet": Look("#1f77b4", "D"),
    "timm_resnet": Look("#1f77b4", "D"),
    "preresnet": Look("#1f77b4", "D"),
    "vit": Look("#d62728", "o"),
    "pit": Look("#e69f00", "^", 1.15),
    "swin": Look("#009e73", "s"),
    "alternet": Look("#cc79a7", "P", 1.4),
    "mixer": Look("#3a3a3a", "v", 1.15),
    "convnext": Look("#56b4e9", "X", 1.3),
}
_OTHER_LOOKS = (
    Look("#8c564b", "p"),
    Look("#b5498f", "h"),
    Look("#6b7d00", "<", 1.15),
    Look("#3d5a80", ">", 1.15),
)

# Models of the same look are told apart by shades and by dashes.
_MOST_SHADES = 6
_RANGE = 0.85  # how far shades go towards black and white
_DARK = 0.3  # the brightness below which a colour only gets lighter
# Dashes are never dotted, since published curves are.
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (4, 1.4)),
    (0, (4, 1.2, 1, 1.2)),
    (0, (1.8, 0.9)),
    (0, (4, 1.2, 1, 1.2, 1, 1.2)),
    (0, (7, 1.4)),
)

# The part of the colours of the paper that is seen on white, and on a dark background.
_DEPTHS = {False: (0, 0.76), True: (0.24, 1)}


_family_colors: ContextVar[Mapping[str, str]] = ContextVar("colours of families")


def with_palette(colors: Mapping[str, str]) -> AbstractContextManager[None]:
    """Replace the colours of families within a `with` block."""
    # A `preresnet`, which has the blocks of an AlterNet, is still a ResNet.
    preresnet = {"preresnet": colors["resnet"]} if "resnet" in colors else {}
    return with_variable(_family_colors, {**preresnet, **colors})


_dark: ContextVar[bool] = ContextVar("whether the background is dark", default=False)


def with_background(name: str) -> AbstractContextManager[None]:
    """Set the background, "light" or "dark", within a `with` block."""
    return with_variable(_dark, name == "dark")


def is_dark() -> bool:
    return _dark.get()


def look_of(member: Member) -> Look:
    """Return the look of a model's family; an unknown family gets one by a checksum of its name."""
    number = crc32(member.family.encode()) + member.nth
    look = _LOOKS.get(member.family) or _OTHER_LOOKS[number % len(_OTHER_LOOKS)]
    return replace(look, color=_family_colors.get({}).get(member.family, look.color))


def _variant_of_look(look: Look, nth: int, count: int) -> Look:
    """Return the look of the nth of `count` models; the first of two or three keeps the look."""
    # When the shades start again, dashes and markers differ from the earlier ones.
    turn, count = nth + nth // _MOST_SHADES, min(count, _MOST_SHADES)
    light = float(np.mean(to_rgb(look.color)))
    darkest = 0 if count <= 3 or light < _DARK else -_RANGE * light
    shares = np.linspace(darkest, _RANGE * (1 - light) if count > 1 else 0, count)
    share = float(shares[nth % count])
    red, green, blue = (part + abs(share) * ((share > 0) - part) for part in to_rgb(look.color))
    return replace(
        look,
        color=to_hex((red, green, blue)),
        dashes=_DASHES[turn % len(_DASHES)],
        half_filled=turn % 2 == 1,
    )


def looks_of(members: Sequence[Member]) -> list[Look]:
    """Return the looks of members that share a panel; equal looks are varied to differ."""
    counts, seen = Counter(map(look_of, members)), Counter[Look]()
    looks = []
    for member in members:
        look = look_of(member)
        looks.append(_variant_of_look(look, seen[look], counts[look]))
        seen[look] += 1
    return looks


_DEFAULT_SIZE = 7  # points


def text_scale() -> float:
    """Return the text size as a multiple of the default; text stops shrinking at 0.86."""
    return max(float(matplotlib.rcParams["font.size"] / _DEFAULT_SIZE), 0.86)


def depth_colors() -> Colormap:
    """Return the colour map of depth, from the first cut point to the last."""
    shades = matplotlib.colormaps["plasma"](np.linspace(*_DEPTHS[is_dark()], 256))
    return LinearSegmentedColormap.from_list("depth", shades)


def depth_color(depth: float) -> str:
    return to_hex(depth_colors()(float(depth)))


def curve_of_depth(depth: float) -> dict[str, Any]:
    """Return the look of a curve that belongs to one cut point among many."""
    return {"color": depth_color(depth), "linewidth": CURVE}
