"""How all that is drawn looks: colours, shades, markers, dashes, and widths in points."""

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

from vitscope.drawing.figure import Member, within

# For marks that belong to no single model: axes behind, and marks in a legend that stand for all.
GRAY = "#595959"
# For marks behind all models: shares, and lines that are white on a dark picture.
PALE, SHADOW = "#b3b3b3", "#808080"

# What stands in a legend for curves of all models.
OF_ALL: dict[str, Any] = {"color": GRAY, "marker": "o"}

# A curve in a small sketch; points of few values, behind the curves of all.
SKETCHED: dict[str, Any] = {"markersize": 2, "linewidth": 0.7}
FEW: dict[str, Any] = {"markersize": 2.4}

# Widths of lines, from those between faces to curves that are many.
THREAD, HAIR, THIN, CURVE = 0.4, 0.5, 0.7, 0.8

HOLLOW_OF_ALL = dict(OF_ALL, markerfacecolor="white", markeredgecolor=GRAY, markeredgewidth=CURVE)

# A line at zero; what a curve or a point is compared with; a moment of training.
ZERO: dict[str, Any] = {"color": "#a0a0a0", "linewidth": 0.6}
REFERENCE: dict[str, Any] = {"color": GRAY, "linestyle": (0, (4, 2)), "linewidth": THIN}
DIAGONAL = {**REFERENCE, "color": "black"}
MOMENT: dict[str, Any] = {"color": GRAY, "linestyle": (0, (1, 1.5)), "linewidth": HAIR}
# Curves without markers, and what was published.
PLAIN: dict[str, Any] = {"linestyle": "-", "marker": "", "linewidth": 1.0}
DASHED = {**PLAIN, "linestyle": (0, (4, 1.4))}
DOTTED: dict[str, Any] = {"linestyle": ":", "linewidth": THIN}
# What joins models that stand side by side, or the lowest value of a row and its highest.
JOINED: dict[str, Any] = {"color": GRAY, "linewidth": 0.6}
# A row that belongs to a model, every second group of rows, and a grid.
ROW: dict[str, Any] = {"color": "#e4e4e4", "linewidth": 0.6}
EVERY_SECOND: dict[str, Any] = {"color": "#f0f0f0", "linewidth": 0}
GRID: dict[str, Any] = {"color": "#d0d0d0", "linewidth": HAIR}

# How opaque shades are: an interval, between quartiles, what reaches from end to end, and bars.
INTERVAL_ALPHA, QUARTILES_ALPHA, RANGE_ALPHA, BAR_ALPHA = 0.25, 0.35, 0.15, 0.45
INTERVAL_WIDTH = 1.4

# Cells without a value, and what is left open in a bar.
UNDEFINED: dict[str, Any] = {"facecolor": "#e6e6e6", "edgecolor": "#8c8c8c", "hatch": "//////"}
UNDEFINED["linewidth"] = 0
HATCHED: dict[str, Any] = {"facecolor": "none", "linewidth": HAIR, "hatch": "//////"}

# Markers: a single head (less opaque in its panel than in the legend), one value of many along an
# axis, at the foot of a panel, an interval in a legend, and a step of a build-up.
HEAD: dict[str, Any] = {"marker": "o", "markersize": 2.2, "markeredgewidth": 0, "linestyle": ""}
HEAD_ALPHA = 0.55
NODE: dict[str, Any] = {"marker": "o", "markersize": 3.5, "markeredgewidth": 0.8}
TICK: dict[str, Any] = {"marker": "|", "markersize": 5, "markeredgewidth": 0.8, "linestyle": ""}
TICK["alpha"] = 0.55
FOOT_MARK: dict[str, Any] = {**TICK, "markersize": 3, "markeredgewidth": HAIR, "alpha": 1}
INTERVAL_BAR: dict[str, Any] = {"marker": "|", "markersize": 7, "markeredgewidth": CURVE}
STEP: dict[str, Any] = {"marker": "o", "markersize": 4.2, "markeredgewidth": 0.9}

# A way through training: where it starts and ends, and where its warm-up ends.
_MARK: dict[str, Any] = {"linestyle": "", "color": "black", "clip_on": False}
START = dict(_MARK, marker="o", markersize=5, markerfacecolor="white", markeredgewidth=0.9)
END = dict(_MARK, marker="*", markersize=8, markeredgecolor="white", markeredgewidth=THREAD)
END_OF_WARMUP = dict(START, markersize=7.5, markerfacecolor="none", markeredgewidth=THIN)

# Maps: of shares, of similarity, of positions, of both signs, and of the loss.
MAP_COLORS, SIMILARITY_COLORS, POSITION_COLORS = "inferno", "magma", "viridis"
SIGNED_COLORS, LOSS_COLORS = "RdBu_r", "plasma"
# How much a map covers the picture below it: its highest value in figures, and all of it in videos.
MOST_OPAQUE, OVERLAY_ALPHA = 0.9, 0.55
# On maps: a query, the trained weights, where a stage begins, and squares around most of it.
CROSS: dict[str, Any] = {"marker": "x", "markersize": 4, "markeredgewidth": 1.2}
QUERY_COLORS = ("#4cc9f0", "#f72585", "#b5e48c", "#ffd166")
CENTRE: dict[str, Any] = {"marker": "+", "markersize": 4, "markeredgewidth": THIN}
CENTRE |= {"color": "white", "linestyle": ""}
BOUNDARY: dict[str, Any] = {"color": "white", "linewidth": 0.6}
INNER_SQUARE: dict[str, Any] = {"color": "#56b4e9", "linewidth": 0.9, "linestyle": "-"}
OUTER_SQUARE = {**INNER_SQUARE, "color": "white", "linestyle": (0, (2.5, 1.5))}

# Bands of frequency, what images are told by (of falling darkness), and verdicts.
_PURPLE, _BROWN, _OLIVE = "#5e3c99", "#b35806", "#a6a600"
FREQUENCY_BANDS: dict[str, dict[str, Any]] = {
    "low": {"color": _PURPLE, "marker": "o"},
    "middle": {"color": _BROWN, "marker": "s"},
    "high": {"color": _OLIVE, "marker": "^"},
}
CUE_COLORS = {"shape": "#2f4858", "texture": "#e0b050", "neither": "#e8e8e8"}


class VerdictLook(NamedTuple):
    """How a verdict is marked: of a recipe in bold, of one network plain; and what it means."""

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

# Depth bands: opaque as marks along an axis; behind curves as a shade, or hatched, which nobody
# takes for an interval.
BAND_COLORS = {"msa": "#7f7f7f", "subsampling": "#a6bddb"}
BAND_LABELS = {"msa": "MSA", "subsampling": "subsampling"}
BANDS: dict[str, dict[str, Any]] = {
    "msa": {"facecolor": BAND_COLORS["msa"], "alpha": 0.18, "lw": 0},
    "subsampling": {"facecolor": "none", "edgecolor": PALE, "hatch": "//////", "lw": 0},
}

# What cut points are: in the colours of depth bands, which leave Convs white, as the paper does.
KIND_COLORS = {
    "stem": "#303030",
    "conv": "white",
    **BAND_COLORS,
    "mlp": "#c9a227",
    "parallel": "#9467bd",
    "ssm": "#8c564b",
    "pool": "#2f7d5b",
}
KIND_EDGE: dict[str, Any] = {"edgecolor": GRAY, "linewidth": THREAD}
KIND_MARK: dict[str, Any] = {"marker": "s", "markersize": 4, "markeredgecolor": GRAY}
KIND_MARK |= {"markeredgewidth": THREAD, "linestyle": "", "clip_on": False}

SHARE_STYLES: dict[str, dict[str, Any]] = {
    "msa": {"color": BAND_COLORS["msa"], "marker": "o", "markersize": 3.5},
    "mlp": {"color": KIND_COLORS["mlp"], "marker": "v", "markersize": 3.5},
    "conv": {"color": _PURPLE, "marker": "D", "markersize": 3.5},
}

# What probes read classes from, and what they read of tokens.
_READ: list[dict[str, Any]] = [
    {"color": _PURPLE, "marker": "o", "markersize": 3},
    {"color": _BROWN, "marker": "s", "markersize": 3},
    {"color": _OLIVE, "marker": "^", "markersize": 3},
]
PROBE_STYLES = dict(zip(("mean token", "prefix token", "single token"), _READ, strict=True))
PROBE_STYLES |= dict(zip(("position", "pixels"), _READ, strict=False))

# How a class is explained, and what explains nothing.
METHOD_STYLES = dict(zip(("grad_cam", "gradient_rollout", "rollout"), _READ, strict=True))
METHOD_STYLES |= {"random": REFERENCE}

# The edge of markers that are not filled.
_EDGE = 0.7
HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": _EDGE}
HOLLOW_POINTS = {**HOLLOW, "linestyle": ""}


@dataclass(frozen=True)
class Look:
    """The colour and the marker of a family; `size` evens out what markers seem to weigh."""

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
        return replace(self, half_filled=False).line | HOLLOW

    @property
    def stroke(self) -> dict[str, Any]:
        """The colour and the dashes of a line that has no markers."""
        return {"color": self.color, "linestyle": self.dashes}

    @property
    def curve(self) -> dict[str, Any]:
        """The whole look, of a line with markers."""
        return self.line | self.stroke


# ResNet and ViT look as in the paper; the others have the colours of Okabe and Ito, which the
# colour blind tell apart. Two architectures share no marker, so that none needs colour.
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

# What tells models of one look from each other: a sequence of so many shades, over so much of the
# way from black to white, where a dark colour only gets lighter; and the dashes. None of these is
# dotted: published curves are.
_MOST_SHADES, _RANGE, _DARK = 6, 0.85, 0.3
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


_palette: ContextVar[Mapping[str, str]] = ContextVar("colours of families")


def palette(colors: Mapping[str, str]) -> AbstractContextManager[None]:
    """Let families have these colours in place of their own."""
    # A ResNet with an AlterNet's blocks is a ResNet all the same.
    preresnet = {"preresnet": colors["resnet"]} if "resnet" in colors else {}
    return within(_palette, {**preresnet, **colors})


def look_of(member: Member) -> Look:
    """Return the look of the family of a model; one that is not known here has one by its name."""
    number = crc32(member.family.encode()) + member.nth
    look = _LOOKS.get(member.family) or _OTHER_LOOKS[number % len(_OTHER_LOOKS)]
    return replace(look, color=_palette.get({}).get(member.family, look.color))


def _variant(look: Look, nth: int, count: int) -> Look:
    """Return the look of the nth of `count` models; two or three begin with the look as it is."""
    # Where the shades begin again, they go with other dashes and markers than before.
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
    """Return the looks of members that share a panel: families that look alike are told apart."""
    counts, seen = Counter(map(look_of, members)), Counter[Look]()
    looks = []
    for member in members:
        look = look_of(member)
        looks.append(_variant(look, seen[look], counts[look]))
        seen[look] += 1
    return looks


# Points of text, if a study says nothing.
_USUAL = 7


def text_scale() -> float:
    """Return how large text is, over the usual size; small text does not get smaller with it."""
    return max(float(matplotlib.rcParams["font.size"] / _USUAL), 0.86)


def depth_colors() -> Colormap:
    """Return the colours from the first cut point to the last."""
    return LinearSegmentedColormap.from_list("depth", _DEPTH_COLORS)


def depth_color(depth: float) -> str:
    return to_hex(depth_colors()(float(depth)))


def curve_of_depth(depth: float) -> dict[str, Any]:
    """Return the look of a curve that is of one cut point among many."""
    return {"color": depth_color(depth), "linewidth": CURVE}
