"""The bins of a reliability diagram, from the predictions of a model."""

import pandas as pd

from vitscope.measures.given import OnPredictions
from vitscope.measures.scores import reliability


def measure_reliability(given: OnPredictions) -> pd.DataFrame:
    """Return a row for each bin of confidence."""
    return reliability(given.predictions).assign(model=given.model)
