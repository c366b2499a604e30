"""What all figures of error and loss share: how panels are called, and the legend."""

from collections.abc import Mapping

from vitscope.claims.published import Published
from vitscope.drawing.legends import Legend
from vitscope.drawing.looks import GRAY, INTERVAL_WIDTH, Look
from vitscope.drawing.text import INTERVAL, published_label

LABELS = {"error_percent": "Test error (%)", "nll_train": "Training NLL"}


def add_entries(legend: Legend, published: Mapping[str, Published], axis: str) -> None:
    """Add to the legend what marks mean: models have names on an axis.

    `axis` says where published points are that are of other models.
    """
    look = Look(GRAY, "o")
    legend.add_marker("measured", look.line)
    legend.add_line(INTERVAL, {"color": GRAY, "linewidth": INTERVAL_WIDTH})
    if published:
        label = published_label(published.values(), others="other models", axis=axis)
        legend.add_marker(label, look.hollow)
