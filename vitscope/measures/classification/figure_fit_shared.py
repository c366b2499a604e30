"""What all figures of error and loss share: how panels are called, and the legend."""

from collections.abc import Mapping
from typing import Any

from matplotlib.lines import Line2D

from vitscope.claims.published import Published
from vitscope.drawing.looks import GRAY, Look
from vitscope.drawing.text import INTERVAL, published_label

LABELS = {"error_percent": "Test error (%)", "nll_train": "Training NLL"}
INTERVAL_WIDTH = 1.4


def entries(published: Mapping[str, Published], axis: str) -> dict[str, Any]:
    """Return the legend: models have names on an axis, so that it says only what marks mean.

    `axis` says where published points are that are of other models.
    """
    look = Look(GRAY, "o")
    found: dict[str, Any] = {
        "measured": Line2D([], [], linestyle="", **look.line),
        INTERVAL: Line2D([], [], color=GRAY, linewidth=INTERVAL_WIDTH),
    }
    if published:
        label = published_label(published.values(), others="other models", axis=axis)
        found[label] = Line2D([], [], linestyle="", **look.hollow)
    return found
