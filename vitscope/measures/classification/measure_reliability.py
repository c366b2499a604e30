"""Reliability: how often a model is right, by how confident it is.

The table `reliability`: one row per model and bin of confidence.

Ten bins of equal width; a bin holds the images whose confidence is above `low` and not above
`high`.
"""

from vitscope.files.tables import Table
from vitscope.measures.classification.measure import Settings
from vitscope.measures.measure import FigureKind, Measure

TABLE = Table(
    "reliability",
    {
        "model": ("string", "model, as the study names it"),
        "bin": ("int32", "bin of confidence, from 0"),
        "low": ("float64", "confidence above which the bin begins"),
        "high": ("float64", "highest confidence of the bin"),
        "images": ("int64", "number of images in the bin"),
        "accuracy": ("float64", "share of these whose class is found; null if there are none"),
        "confidence": ("float64", "their mean confidence; null if there are none"),
    },
)


RELIABILITY = Measure(
    needs="predictions",
    table=TABLE,
    question="How networks classify",
    figures={"reliability": FigureKind(beside=("classification",))},
    predictions_of=("classification", Settings),
)
