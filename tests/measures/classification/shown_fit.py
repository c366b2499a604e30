"""Tables of error and loss that are made for a test, and the marks that figures show of them."""

import numpy as np
import pandas as pd

METRICS = ("error_percent", "nll_train")


def rows(model: str, error: float) -> pd.DataFrame:
    """Return the rows of a model: an error with an interval, and a loss without."""
    return pd.DataFrame(
        {
            "model": model,
            "metric": METRICS,
            "images": [2000, 1000],
            "value": [error, 0.7 + error / 50],
            "ci_low": [error - 1, np.nan],
            "ci_high": [error + 1.5, np.nan],
        }
    )


def marks(axes, face):
    """Return the marks of an axis, the measured ones filled and the published ones open."""
    lines = [line for line in axes.lines if line.get_marker() != "None"]
    return [line for line in lines if (line.get_markerfacecolor() == "white") == (face == "open")]
