"""Accuracy and calibration, as the authors define them, from the predictions for each image."""

import pandas as pd

CUTOFF = 0.9
BINS = 10


def summarized(predictions: pd.DataFrame, classes: int) -> dict[str, float]:
    """Return the scores of a classification table, without the model and the number of images."""
    raise NotImplementedError


def reliability(predictions: pd.DataFrame, bins: int = BINS) -> pd.DataFrame:
    """Return for each bin of confidence its images, their accuracy and their mean confidence."""
    raise NotImplementedError
