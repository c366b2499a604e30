"""The table `classification`: accuracy and calibration."""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "classification",
    {
        "model": (pa.string(), "model, as the study names it"),
        "images": (pa.int64(), "number of images"),
        "accuracy": (pa.float64(), "share of the images whose class is found"),
        "accuracy_90": (pa.float64(), "the same among confident predictions; null if none is"),
        "nll": (pa.float64(), "negative log-likelihood, mean over images"),
        "unconfidence_90": (pa.float64(), "share of unconfident among wrong predictions"),
        "iou": (pa.float64(), "intersection over union, mean over classes"),
        "iou_90": (pa.float64(), "the same among confident predictions"),
        "frequency_90": (pa.float64(), "share of predictions that are confident"),
        "top5": (pa.float64(), "share of images whose class is among the five most probable"),
        "brier": (pa.float64(), "Brier score, summed over classes, mean over images"),
        "ece": (pa.float64(), "expected calibration error, in ten bins of equal width"),
        "signed_ece": (pa.float64(), "the same with its sign: positive where overconfident"),
    },
)
