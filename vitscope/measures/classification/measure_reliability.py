"""Reliability: how often a model is right, by how confident it is."""

from vitscope.measures.classification.measure import Settings
from vitscope.measures.measure import FigureKind, Measure

MEASURE = Measure(
    needs="predictions",
    figures={"reliability": FigureKind(beside=("classification",))},
    predictions_of=("classification", Settings),
)
