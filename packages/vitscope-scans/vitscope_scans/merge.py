"""Average distances of hidden attention over images."""

import pandas as pd

from vitscope.measures.given import Parts
from vitscope.measures.per_image import image_means_by_cut_point


def merge_scans(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    rows = pd.concat(parts.tables, ignore_index=True)
    means = image_means_by_cut_point([rows], "distance", resamples, seed)
    uniform = rows.drop_duplicates("index")[["index", "uniform"]]
    return parts.cut_points.merge(means, on="index").merge(uniform, on="index")
