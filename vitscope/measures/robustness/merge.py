"""The scores of a model on all views of the images, without what it says of each image."""

import pandas as pd

from vitscope.measures.given import Parts


def merge_robustness(parts: Parts) -> pd.DataFrame:
    """Return the scores of all parts, below each other."""
    return pd.concat(parts.tables, ignore_index=True).drop(columns="right")
