"""The columns of a table of predictions."""

from vitscope.files.tables import Table

PREDICTIONS = Table(
    "predictions",
    {
        "image": ("int64", "row of the image in the artefact of its split"),
        "label": ("int32", "class of the image"),
        "prediction": ("int32", "class with the highest probability"),
        "confidence": ("float64", "that probability"),
        "nll": ("float64", "negative log-likelihood of the label"),
        "brier": ("float64", "sum over classes of the squared error of the probability"),
        "top5": ("bool", "whether the label is among the five most probable classes"),
    },
)
