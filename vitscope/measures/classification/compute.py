"""Accuracy and calibration of a model, from its predictions."""

import pandas as pd

from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import scores_of


def measure(given: OnPredictions, classes: int) -> pd.DataFrame:
    """Return the scores of a model, in one row."""
    scores = scores_of(given.predictions, classes)
    return pd.DataFrame([{"model": given.model, "images": len(given.predictions)} | scores])
