"""What chance explains of a similarity: the same with the images of one network in other orders."""

from math import ceil

import numpy as np

from vitscope.files.arrays import Array
from vitscope.measures.cka.measure import LEVEL

# Differences of this share of a norm or less count as rounding.
ROUNDING = 1e-6

# Orders of the images in which similarities are those of chance, drawn alike for all networks.
PERMUTATIONS, PERMUTATION_SEED = 200, 0


def calibrated(found: Array, null: Array) -> dict[str, Array]:
    """Return columns: the threshold of the null (permutations, ...), p, and the calibrated value.

    As by Groeger et al. (2026): the threshold is an order statistic of the observed value and the
    null together, and the calibrated value is 0 there and 1 where the similarity is 1.
    """
    count = len(null)
    ordered = np.sort(np.concatenate([found[None], null]), axis=0)
    threshold = ordered[ceil((1 - LEVEL) * (count + 1)) - 1]
    p = (1 + (null >= found).sum(axis=0)) / (count + 1)
    above = (found - threshold) / np.where(threshold < 1, 1 - threshold, 1)
    unknown = np.isnan(found)
    return {
        "null": np.where(unknown, np.nan, threshold),
        "p": np.where(unknown, np.nan, p),
        "calibrated": np.clip(above, 0, 1),
    }
