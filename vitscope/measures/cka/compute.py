"""Linear CKA of all pairs of cut points, from batches of images, so that shards merge exactly.

The HSIC of a batch is the unbiased one of Song et al. (2012). It is the inner product of the two
Gram matrices, each U-centred: so each is centred once, and all pairs are one product of matrices.
The CKA is that of Nguyen et al. (2021), from means over batches.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile, as_float
from vitscope.measures.cka.batches import LEAST_BATCH
from vitscope.measures.given import OnLatents

Array = npt.NDArray[Any]

# Gram matrices are of single precision: one that is this much smaller once it is centred is nothing
# but rounding.
ROUNDING = 1e-6

# Features are copied out of the memory map in pieces that stay in a cache.
PIECE_BYTES = 1 << 22


def gram(features: Array, dtype: str = "F32") -> Array:
    """Return the Gram matrix of the rows of (N, D), less a vector that is common to all of them.

    The HSIC is the same whichever vector that is. Without the mean, little cancels; without the
    first row before, nothing at all is left of rows that are equal.
    """
    images, width = features.shape
    step = max(1, PIECE_BYTES // (4 * images))
    total = np.zeros((images, images))
    for start in range(0, width, step):
        piece = as_float(features[:, start : start + step], dtype)
        piece = piece - piece[0]
        piece -= piece.mean(axis=0)
        total += piece @ piece.T
    return total


def u_centred(grams: Array) -> Array:
    """Return Gram matrices (..., N, N) without their diagonals and then without row means.

    Each row and each column of the result adds up to zero, its diagonal being zero.
    """
    images = grams.shape[-1]
    off_diagonal = np.where(np.eye(images, dtype=bool), 0, grams)
    rows = off_diagonal.sum(axis=-1, keepdims=True) / (images - 2)
    total = rows.sum(axis=-2, keepdims=True) / (images - 1)
    centred = off_diagonal - rows - np.swapaxes(rows, -1, -2) + total
    return np.where(np.eye(images, dtype=bool), 0, centred)


def hsic(grams: Array) -> Array:
    """Return the unbiased HSIC of all pairs of Gram matrices (K, N, N) as (K, K)."""
    count, images, _ = grams.shape
    if images < LEAST_BATCH:
        raise VitscopeError(
            f"An unbiased HSIC is of {LEAST_BATCH} images or more, not of {images}: "
            "measure more images."
        )
    flat = u_centred(grams).reshape(count, images * images)
    size = np.linalg.norm(grams.reshape(flat.shape), axis=1)
    flat[np.linalg.norm(flat, axis=1) <= ROUNDING * size] = 0
    result: Array = flat @ flat.T / (images * (images - 3))
    return result


def _grams(latents: TensorFile, first: int, images: int) -> Array:
    """Return the Gram matrices of all cut points over `images` images of a shard."""
    grams = []
    for name in latents.names:
        maps = latents.mapped(name)[first : first + images]
        with np.errstate(invalid="ignore", over="ignore"):
            grams.append(gram(maps.reshape(images, -1), latents.dtype(name)))
        if not np.isfinite(grams[-1]).all():
            raise VitscopeError(
                f"The feature maps of the cut point {name} in {latents.path} have values that are "
                "not finite or too large to be squared: check the checkpoint of the model."
            )
    return np.stack(grams)


def shard_hsic(latents: TensorFile, first_image: int, batch_size: int) -> pd.DataFrame:
    """Return the HSIC of all pairs of cut points over each whole batch of a shard.

    `first_image` is the position of the shard's first image among those measured. Images that fill
    no batch are left out.
    """
    count = len(latents.names)
    index, other = np.triu_indices(count)
    images = latents.shape(latents.names[0])[0]
    # Batches need not hold every image: one more pass costs little beside the products.
    latents.verify()
    batches = range(0, images - batch_size + 1, batch_size)
    values = [hsic(_grams(latents, first, batch_size))[index, other] for first in batches]
    return pd.DataFrame(
        {
            "index": np.tile(index, len(batches)),
            "other_index": np.tile(other, len(batches)),
            "first_image": np.repeat(first_image + np.asarray(batches, np.int64), len(index)),
            "images": batch_size,
            "hsic": np.concatenate(values) if values else np.empty(0),
        }
    )


def measure(given: OnLatents, batch_size: int) -> pd.DataFrame:
    """Measure a shard."""
    return shard_hsic(given.latents, given.first_image, batch_size)
