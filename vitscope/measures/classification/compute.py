import pandas as pd

from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import calibration_scores, scores_by_confidence, scores_of


def measure_classification(
    given: OnPredictions, classes: int, resamples: int, seed: int
) -> pd.DataFrame:
    scores = scores_of(given.predictions, classes)
    scores |= calibration_scores(given.predictions, resamples, seed)
    return pd.DataFrame([{"model": given.model, "images": len(given.predictions)} | scores])


def measure_reliability(given: OnPredictions) -> pd.DataFrame:
    return scores_by_confidence(given.predictions).assign(model=given.model)
