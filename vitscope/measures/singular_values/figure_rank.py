"""The effective rank of tokens and of pooled images by depth."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vitscope.claims.published import Published
from vitscope.drawing.bands import band_entries
from vitscope.drawing.by_depth import panels_by_depth
from vitscope.drawing.figure import Member
from vitscope.drawing.legends import legend, markers, shades
from vitscope.drawing.looks import GRAY, Look, look_of
from vitscope.drawing.rows import rows_of
from vitscope.drawing.text import INTERVAL
from vitscope.measures.singular_values.table import IMAGES, TOKENS

_INTERVAL_ALPHA = 0.25
_MOST: dict[str, Any] = {"color": GRAY, "lw": 0.7, "linestyle": ":"}


def _draw(axes: Axes, points: pd.DataFrame, look: Look) -> None:
    tokens, images = (points[points["of"] == of] for of in (TOKENS, IMAGES))
    depth = tokens["depth"]
    axes.plot(depth, tokens["most"], **_MOST, zorder=2)
    axes.plot(images["depth"], images["effective_rank"], **look.hollow, lw=0.7, clip_on=False)
    shade: dict[str, Any] = {"color": look.color, "alpha": _INTERVAL_ALPHA, "lw": 0}
    axes.fill_between(depth, tokens["ci_low"], tokens["ci_high"], **shade)
    axes.plot(depth, tokens["effective_rank"], **look.line, clip_on=False, zorder=3)


def _entries(table: pd.DataFrame, members: Sequence[Member]) -> dict[str, Any]:
    looks = dict.fromkeys(look_of(member.family) for member in members)
    found: dict[str, Any] = {
        "tokens of an image": markers(look.line for look in looks),
        "pooled images": markers(look.hollow for look in looks),
        "most for tokens": Line2D([], [], **_MOST),
    }
    if table["ci_low"].notna().any():
        found[INTERVAL] = shades((look.color for look in looks), _INTERVAL_ALPHA)
    return found


def plot(
    table: pd.DataFrame, members: Sequence[Member], published: Mapping[str, Published]
) -> Figure:
    """Draw one panel per model: the effective rank of tokens and of images by depth."""
    rows = [rows_of("singular_values", table, each.model, ["index"]) for each in members]
    tokens = [each[each["of"] == TOKENS].reset_index(drop=True) for each in rows]
    panels, shown = panels_by_depth(members, tokens)
    for axes, member, points in zip(panels.axes, members, rows, strict=True):
        _draw(axes, points, look_of(member.family))
        axes.set_ylim(bottom=0)
    panels.label("Normalized depth", "Effective rank")
    legend(panels, _entries(table, members) | band_entries(shown))
    return panels.figure
