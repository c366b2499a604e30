"""Mutual nearest neighbours of all pairs of cut points: images that are near each other in both.

As `mutual_knn` of Huh et al. (2024): of the nearest other images of each image, by the cosine of
their vectors, the share that two cut points have in common, mean over images. The vector of an
image is its feature map, averaged over space.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vitscope.files.arrays import Array
from vitscope.files.tensors import as_float
from vitscope.measures.cka.chance import PERMUTATION_SEED, PERMUTATIONS, ROUNDING, calibrated

NEIGHBOURS = 10
# Neighbours are searched among so many images at most: distances grow as their square.
MOST_IMAGES = 1024


def kept_images(first_image: int, images: int) -> int:
    """Return of how many images of a batch vectors are kept."""
    return min(max(MOST_IMAGES - first_image, 0), images)


def mean_vectors(maps: Array, dtype: str, first_image: int) -> Array:
    """Return the means over space of the maps of a batch whose vectors are kept, one by one."""
    kept = as_float(maps[: kept_images(first_image, len(maps))], dtype)
    means: Array = kept.mean(axis=(2, 3)).ravel()
    return means


def stored_vectors(rows: pd.DataFrame) -> list[Array]:
    """Return the vectors (images, channels) of each cut point, from the rows of its batches."""

    def of_cut_point(batches: pd.DataFrame) -> Iterator[Array]:
        kept = map(kept_images, batches["first_image"], batches["images"])
        for images, vectors in zip(kept, batches["vectors"], strict=True):
            yield np.reshape(vectors, (images, -1))

    there = rows[rows["first_image"] < MOST_IMAGES].sort_values("first_image")
    return [np.concatenate([*of_cut_point(batches)]) for _, batches in there.groupby("index")]


def nearest(vectors: Array) -> Array:
    """Return the nearest other images (images, 10) of each image; none if all are the same."""
    exact = vectors.astype(np.float64)
    spread = np.linalg.norm(exact - exact.mean(axis=0))
    if len(exact) <= NEIGHBOURS or spread <= ROUNDING * np.linalg.norm(exact):
        return np.empty((len(exact), 0), np.int64)
    exact /= np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), np.finfo(float).tiny)
    cosines = exact @ exact.T
    np.fill_diagonal(cosines, -np.inf)
    found: Array = np.argpartition(-cosines, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
    return found


def _common(ours: Sequence[Array], theirs: Sequence[Array]) -> tuple[Array, Array]:
    """Return the shares (K, L) of neighbours in common, and those of permuted images."""
    from scipy.sparse import csr_array

    images = len(ours[0])

    def as_matrix(near: Sequence[Array], order: Array) -> csr_array:
        """Return a row for each cut point, with a 1 for each image and neighbour, renamed."""
        pairs = [(order[:, None] * images + order[each]).ravel() for each in near]
        ends = np.cumsum([0, *map(len, pairs)])
        flat = np.concatenate(pairs)
        shape = len(near), images**2
        return csr_array((np.ones(len(flat), np.float32), flat, ends), shape=shape)

    random, in_order = np.random.default_rng(PERMUTATION_SEED), np.arange(images)
    others = as_matrix(theirs, in_order).T.tocsr()
    orders = [in_order, *(random.permutation(images) for _ in range(PERMUTATIONS))]
    counts = [(as_matrix(ours, order) @ others).toarray() for order in orders]
    shares = np.stack(counts).astype(np.float64) / (images * NEIGHBOURS)
    undefined = [np.array([not each.size for each in near]) for near in (ours, theirs)]
    shares[:, undefined[0][:, None] | undefined[1]] = np.nan
    return shares[0], shares[1:]


def mutual_columns(
    vectors: Sequence[Array], others: Sequence[Array] | None = None
) -> dict[str, Any]:
    """Return columns for all pairs of cut points, in order: of two networks, or within one."""
    ours = [*map(nearest, vectors)]
    mutual, null = _common(ours, ours if others is None else [*map(nearest, others)])
    if others is None:
        # As one pair in both orders is one pair, it has one null.
        null = np.where(np.tri(len(ours), k=-1, dtype=bool), np.swapaxes(null, 1, 2), null)
    of_null = {f"mutual_{name}": each for name, each in calibrated(mutual, null).items()}
    columns = {name: each.ravel() for name, each in ({"mutual": mutual} | of_null).items()}
    return {"mutual_images": len(vectors[0]), **columns}
