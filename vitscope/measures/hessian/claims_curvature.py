"""A claim about the curvature of blocks: how far they differ."""

import numpy as np
import pandas as pd

from vitscope.claims.claim import Evidence, Finding, attention_against_convolution, claim
from vitscope.claims.comparing import difference
from vitscope.files.arrays import Array
from vitscope.measures.hessian.claims import interval_over_batches


def _decades(points: pd.DataFrame) -> Array:
    """Return the base-10 logarithm of the magnitude of each block, (batches, blocks)."""
    wide = points.set_index(["batch", "index"])["eigenvalue"].abs().unstack()
    # A block without any curvature is not compared.
    with np.errstate(divide="ignore"):
        decades: Array = np.log10(wide.to_numpy(np.float64))
    return decades[:, np.isfinite(decades).all(axis=0)]


def _spread(means: Array) -> Array:
    spread: Array = np.std(means, axis=-1, ddof=1)
    return spread


@claim(
    "The curvature of blocks differs more in networks with MSAs than in CNNs",
    "Zhang et al. 2024",
    "difference of the spread over blocks in decades",
    attention_against_convolution,
    holds_above=0,
)
def msa_has_blocks_of_different_curvature(
    ours: pd.DataFrame, theirs: pd.DataFrame
) -> Finding | None:
    """Not in the paper: Zhang et al. 2024 find that the Hessians of blocks of Transformers have
    spectra that differ more than those of CNNs, by distances between densities of eigenvalues. Here
    a block stands for its largest eigenvalue by magnitude: the value is the standard deviation over
    blocks, stem and head among them, of the base-10 logarithm of it, averaged over batches; that of
    the model with MSAs minus that of the convolutional one. The claim holds if it is above zero.
    The interval is a bootstrap over batches, and too narrow with few batches.
    """
    ends = [_decades(points) for points in (ours, theirs)]
    if min(each.shape[1] for each in ends) < 2:
        return None
    found = difference(*(float(_spread(each.mean(axis=0))) for each in ends))
    return found and Finding(found.value, interval=interval_over_batches(_spread, *ends))


def _measured(rows: pd.DataFrame, _: pd.DataFrame) -> pd.DataFrame:
    return rows.loc[rows["of"] == "block", ["batch", "index", "eigenvalue"]]


CLAIMS = {"curvature": Evidence("curvature", (msa_has_blocks_of_different_curvature,), _measured)}
