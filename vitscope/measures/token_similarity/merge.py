"""Token similarity: the mean over the images of all shards, and its interval."""

import pandas as pd

from vitscope.measures.given import Parts
from vitscope.measures.per_image import merged_means


def merge(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    """Return the similarity at each cut point, with what is known of the cut point."""
    return merged_means(parts, "similarity", resamples, seed)
