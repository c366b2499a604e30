"""The columns of a table of predictions."""

import pyarrow as pa

from vitscope.files.tables import Table

PREDICTIONS = Table(
    "predictions",
    {
        "image": (pa.int64(), "row of the image in the artefact of its split"),
        "label": (pa.int32(), "class of the image"),
        "prediction": (pa.int32(), "class with the highest probability"),
        "confidence": (pa.float64(), "that probability"),
        "nll": (pa.float64(), "negative log-likelihood of the label"),
        "brier": (pa.float64(), "sum over classes of the squared error of the probability"),
        "top5": (pa.bool_(), "whether the label is among the five most probable classes"),
    },
)
