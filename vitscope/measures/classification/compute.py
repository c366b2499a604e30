"""Accuracy and calibration of a model, from its predictions."""

import pandas as pd

from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import calibration, scores_of


def measure_classification(
    given: OnPredictions, classes: int, resamples: int, seed: int
) -> pd.DataFrame:
    """Return the scores of a model, in one row."""
    scores = scores_of(given.predictions, classes)
    scores |= calibration(given.predictions, resamples, seed)
    return pd.DataFrame([{"model": given.model, "images": len(given.predictions)} | scores])
