"""Singular values: of tokens as means over images, of images from all of them."""

from typing import Any

import numpy as np
import pandas as pd

from vitscope.measures.given import Parts
from vitscope.measures.per_image import means
from vitscope.measures.singular_values.spectra import (
    effective_rank,
    log_ratios,
    most,
    singular_values,
)
from vitscope.measures.singular_values.table import IMAGES, TOKENS


def merge_singular_values(parts: Parts, resamples: int, seed: int) -> pd.DataFrame:
    """Return both spectra of a model at each cut point."""
    per_image = pd.concat(parts.tables, ignore_index=True)
    # In one order, however the images were cut into shards.
    ordered = per_image.sort_values(["index", "image"], ignore_index=True)
    ranks = means([ordered], "effective_rank", resamples, seed)
    at = ordered.groupby("index")
    tokens = ranks.merge(pd.DataFrame(_of_tokens(*each) for each in at), on="index")
    images = pd.DataFrame(_of_images(*each) for each in at)
    both = pd.concat([tokens, images], ignore_index=True).sort_values("index", kind="stable")
    return parts.cut_points.merge(both, on="index", validate="one_to_many")


def _of_tokens(index: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the mean spectrum of the tokens of images, of those that have one."""
    with_spectrum = rows.loc[rows["effective_rank"] > 0, "log_ratios"]
    ratios = np.stack(with_spectrum.to_list()).mean(axis=0) if len(with_spectrum) else []
    vectors, channels = int(rows["tokens"].iloc[0]), len(rows["pooled"].iloc[0])
    return {
        "index": index,
        "of": TOKENS,
        "vectors": vectors,
        "most": most(vectors, channels),
        "log_ratios": [*ratios],
    }


def _of_images(index: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the spectrum of the pooled images."""
    pooled = np.stack(rows["pooled"].to_list())
    values = singular_values(pooled)
    alone = len(pooled) == 1
    return {
        "index": index,
        "images": len(pooled),
        "of": IMAGES,
        "vectors": len(pooled),
        "most": most(*pooled.shape),
        "effective_rank": np.nan if alone else float(effective_rank(values)),
        "log_ratios": [*log_ratios(values)] if values.any() else [],
    }
