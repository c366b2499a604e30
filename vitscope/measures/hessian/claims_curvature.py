"""A claim about the curvature of blocks: how far they differ."""

import numpy as np
import pandas as pd

from vitscope.claims.claim import Claim, Evidence, attention_against_convolution
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic
from vitscope.files.arrays import Array
from vitscope.measures.hessian.claims import PAIRED, compare_means


def _decades(points: Points) -> Array:
    """Return the base-10 logarithm of the magnitude of each block, (batches, blocks)."""
    wide = points.frame.set_index(["batch", "index"])["eigenvalue"].abs().unstack()
    # A block without any curvature is not compared.
    with np.errstate(divide="ignore"):
        decades: Array = np.log10(wide.to_numpy(np.float64))
    return decades[:, np.isfinite(decades).all(axis=0)]


def _spread(means: Array) -> Array:
    spread: Array = np.std(means, axis=-1, ddof=1)
    return spread


def _differs_more(ours: Points, theirs: Points) -> Found | None:
    decades = [_decades(points) for points in (ours, theirs)]
    enough = min(each.shape[1] for each in decades) > 1
    return compare_means(_spread, *decades) if enough else None


def _measured(rows: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    return rows.loc[rows["of"] == "block", ["batch", "index", "eigenvalue"]]


CLAIMS_CURVATURE = Evidence(
    "curvature",
    (
        Claim(
            "msa_has_blocks_of_different_curvature",
            "The curvature of blocks differs more in networks with MSAs than in CNNs",
            "Zhang et al. 2024",
            attention_against_convolution,
            Statistic(
                "difference of the spread over blocks in decades",
                "A block, stem and head among them, stands for its largest eigenvalue by "
                "magnitude: the value is the standard deviation over blocks of the base-10 "
                "logarithm of it, averaged over batches; that of the model with MSAs minus "
                f"that of the convolutional one. {PAIRED}",
                _differs_more,
            ),
            "Not in the paper: Zhang et al. 2024 find that the Hessians of blocks of "
            "Transformers have spectra that differ more than those of CNNs, by distances "
            "between densities of eigenvalues.",
        ),
    ),
    _measured,
)
