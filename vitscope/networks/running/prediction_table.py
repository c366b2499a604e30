"""The columns of a table of predictions."""

from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.files.tables import Table

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.data.split import Split

PREDICTIONS = Table(
    "predictions",
    {
        "image": ("int64", "row of the image in its split"),
        "label": ("int32", "class of the image; null, as all that goes by it, if it is unknown"),
        "prediction": ("int32", "class with the highest probability"),
        "class_name": ("string", "name of that class"),
        "confidence": ("float64", "that probability"),
        "nll": ("float64", "negative log-likelihood of the label"),
        "brier": ("float64", "sum over classes of the squared error of the probability"),
        "top5": ("bool", "whether the label is among the five most probable classes"),
    },
)


def read_labelled_predictions(path: Path | str, images: "Split") -> "pd.DataFrame":
    """Read predictions for images of a split; refuse images whose classes are unknown."""
    from vitscope.data.split import known_labels

    found = PREDICTIONS.read(path)
    known_labels(images, found["image"].tolist())
    return found
