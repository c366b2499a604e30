"""The Gram matrices of one network, from which its CKA with any other is merged.

They take a thousandth of the room of latents, or less: so the latents of two networks need never
exist at the same time.
"""

import numpy as np
import pandas as pd

from vitscope.measures.cka.compute import batches_of
from vitscope.measures.given import OnLatents


def measure_cka_between(given: OnLatents, batch_size: int) -> pd.DataFrame:
    """Return the Gram matrices of all cut points, for each batch of a shard."""
    upper = np.triu_indices(batch_size)
    rows = [
        (index, first_image, batch_size, gram[upper])
        for first_image, grams in batches_of(given.latents, given.first_image, batch_size)
        for index, gram in enumerate(grams)
    ]
    return pd.DataFrame(rows, columns=["index", "first_image", "images", "gram"])
