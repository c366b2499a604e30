"""Depth bands: the colour and the name of each kind, behind curves, along axes and in legends."""

from collections.abc import Iterable
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from vitscope.claims.depth_bands import Band

COLORS = {"msa": "#7f7f7f", "subsampling": "#1f77b4"}
LABELS = {"msa": "MSA", "subsampling": "subsampling"}
# Of a band behind a curve; marks along an axis are opaque.
_BEHIND: dict[str, Any] = {"alpha": 0.18, "lw": 0}


def draw_bands(axes: Axes, bands: Iterable[Band]) -> None:
    """Shade the bands behind everything else."""
    for band in bands:
        axes.axvspan(band.start, band.end, color=COLORS[band.kind], **_BEHIND, zorder=0)


def band_entries(bands: Iterable[Band]) -> dict[str, Artist]:
    """Return a legend entry for each kind of band that occurs."""
    return _entries({band.kind for band in bands}, **_BEHIND)


def mark_entries(kinds: Iterable[str]) -> dict[str, Artist]:
    """Return a legend entry for each kind of band that is marked along an axis."""
    return _entries(set(kinds), lw=0)


def _entries(occurring: set[str], **look: Any) -> dict[str, Artist]:
    return {
        label: Patch(facecolor=COLORS[kind], **look)
        for kind, label in LABELS.items()
        if kind in occurring
    }
