"""Linear CKA of all pairs of cut points, from batches of images, so that shards merge exactly.

The HSIC of a batch is the unbiased estimate of Song et al. (2012): the inner product of two
U-centred Gram matrices, each of which is centred once for all pairs. The CKA is computed from the
means of the HSIC over batches, as in Nguyen et al. (2021).

Maps of independent images are similar, too, the more so the fewer images there are: the same means,
with the images of one of two maps in another order, say how similar chance makes them.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.files.tensors import as_float
from vitscope.measures.cka.chance import PERMUTATION_SEED, PERMUTATIONS, ROUNDING, calibrated
from vitscope.measures.cka.measure import CKA_PART, LEAST_BATCH
from vitscope.measures.cka.neighbours import mean_vectors, mutual_columns, stored_vectors
from vitscope.measures.given import Latents, OnLatents, Parts

# Features are copied out of the memory map in slices, each small enough for the cache.
SLICE_BYTES = 1 << 22


def gram(features: Array, dtype: str = "F32") -> Array:
    """Return the Gram matrix of the rows of `features` (N, D), minus their mean row.

    The HSIC does not change when the same vector is subtracted from all rows. Subtracting the mean
    keeps the numbers small, so that centring loses few digits. The first row is subtracted before
    that, so that equal rows become exactly zero, which rounding of their mean would prevent.
    """
    images, width = features.shape
    step = max(1, SLICE_BYTES // (4 * images))
    total = np.zeros((images, images))
    for start in range(0, width, step):
        columns = as_float(features[:, start : start + step], dtype)
        columns = columns - columns[0]
        columns -= columns.mean(axis=0)
        total += columns @ columns.T
    return total


def u_centred(grams: Array) -> Array:
    """U-centre Gram matrices (..., N, N): the diagonal and all row sums become zero."""
    images = grams.shape[-1]
    off_diagonal = np.where(np.eye(images, dtype=bool), 0, grams)
    rows = off_diagonal.sum(axis=-1, keepdims=True) / (images - 2)
    total = rows.sum(axis=-2, keepdims=True) / (images - 1)
    centred = off_diagonal - rows - np.swapaxes(rows, -1, -2) + total
    return np.where(np.eye(images, dtype=bool), 0, centred)


def hsic(grams: Array) -> Array:
    """Return the unbiased HSIC (K, K) of all pairs of Gram matrices `grams` (K, N, N)."""
    count, images, _ = grams.shape
    if images < LEAST_BATCH:
        raise VitscopeError(
            f"An unbiased HSIC is of {LEAST_BATCH} images or more, not of {images}: "
            "measure more images."
        )
    flat = u_centred(grams).reshape(count, images * images)
    size = np.linalg.norm(grams.reshape(flat.shape), axis=1)
    flat[np.linalg.norm(flat, axis=1) <= ROUNDING * size] = 0
    # Multiply pair by pair: in one product, the last digits would depend on the other cut points.
    result: Array = np.stack([np.vecdot(flat, each) for each in flat]) / (images * (images - 3))
    return result


def null_hsic(first_image: int, ours: Array, theirs: Array) -> Array:
    """Return the HSIC (permutations, K, L) of a batch, with the images of `theirs` permuted.

    Both are Gram matrices (K, N, N) and (L, N, N). The first image of the batch says how, so that
    each permutation is of all images, however these are cut into shards.
    """
    images = ours.shape[-1]
    random = np.random.default_rng([PERMUTATION_SEED, first_image])
    centred = u_centred(theirs)
    flat = u_centred(ours).reshape(len(ours), -1)
    found = np.empty((PERMUTATIONS, len(ours), len(theirs)))
    for permuted in found:
        order = random.permutation(images)
        others = centred[:, order][:, :, order].reshape(len(theirs), -1)
        # Pair by pair, as the HSIC of the images in their own order.
        permuted[:] = np.stack([np.vecdot(flat, each) for each in others], axis=1)
    found /= images * (images - 3)
    return found


class Batch(NamedTuple):
    """Images of a shard: the first, and each cut point's Gram matrix and vectors of images."""

    first_image: int
    grams: Array
    vectors: list[Array]


def _batch_of_images(latents: Latents, first: int, images: int, first_image: int) -> Batch:
    grams, vectors = [], []
    for name in latents.names:
        maps, dtype = latents.mapped(name)[first : first + images], latents.dtype(name)
        with np.errstate(invalid="ignore", over="ignore"):
            grams.append(gram(maps.reshape(images, -1), dtype))
        if not np.isfinite(grams[-1]).all():
            raise VitscopeError(
                f"The feature maps of the cut point {name} in {latents.path} have values that are "
                "not finite or too large to be squared: check the checkpoint of the model."
            )
        vectors.append(mean_vectors(maps, dtype, first_image))
    return Batch(first_image, np.stack(grams), vectors)


def whole_batches(latents: Latents, first_image: int, batch_size: int) -> Iterator[Batch]:
    """Yield each whole batch of a shard.

    An image is given by its position among the measured images; `first_image` is the position of
    the first image of the shard. The last images are left out if they do not fill a batch.
    """
    # Verify all images first, since batches may leave out some; the products take much longer.
    latents.verify()
    images = latents.shape(latents.names[0])[0]
    for first in range(0, images - batch_size + 1, batch_size):
        yield _batch_of_images(latents, first, batch_size, first_image + first)


def measure_cka(given: OnLatents, batch_size: int) -> pd.DataFrame:
    index, other = np.triu_indices(len(given.latents.names))
    found = []
    for first, grams, vectors in whole_batches(given.latents, given.first_image, batch_size):
        values = hsic(grams)[index, other]
        null = null_hsic(first, grams, grams)[:, index, other].T.astype(np.float32)
        # The vectors of a cut point are kept once, beside its HSIC with itself.
        own = [vectors[i] if i == j else None for i, j in zip(index, other, strict=True)]
        rows = {"index": index, "other_index": other, "first_image": first, "images": batch_size}
        found.append(pd.DataFrame(rows | {"hsic": values, "null": [*null], "vectors": own}))
    return (
        pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*CKA_PART.columns])
    )


def measure_cka_between(given: OnLatents, batch_size: int) -> pd.DataFrame:
    upper = np.triu_indices(batch_size)
    rows = [
        (index, first, batch_size, gram[upper], each)
        for first, grams, vectors in whole_batches(given.latents, given.first_image, batch_size)
        for index, (gram, each) in enumerate(zip(grams, vectors, strict=True))
    ]
    return pd.DataFrame(rows, columns=["index", "first_image", "images", "gram", "vectors"])


def _hsic_by_batch(rows: pd.DataFrame) -> Array:
    """Return the HSIC (batches, K, K) of all pairs of cut points, with batches in order."""
    pairs = rows.pivot(index="first_image", columns=["index", "other_index"], values="hsic")
    count = rows["index"].max() + 1
    upper = np.zeros((len(pairs), count, count))
    upper[:, *np.triu_indices(count)] = pairs.to_numpy()
    return np.where(np.tri(count, dtype=bool), np.swapaxes(upper, 1, 2), upper)


def _cka_from_hsic(hsic: Array, own: Array | None = None) -> Array:
    """Divide HSIC (..., K, K) by those of each cut point with itself: `own`, or the diagonal."""
    own = np.diagonal(hsic, axis1=-2, axis2=-1) if own is None else own
    known = np.where(own > 0, own, np.nan)
    found: Array = hsic / np.sqrt(known[..., :, None] * known[..., None, :])
    return found


def _mean_cka(model: str, images: int, batches: Array, null: Array) -> pd.DataFrame:
    """Return the CKA of all pairs of cut points, each in both orders, from HSIC (batches, K, K).

    `null` is the mean HSIC over batches, of each permutation (permutations, K, K).
    """
    means = batches.mean(axis=0)
    cka = _cka_from_hsic(means)
    # The HSIC of a map with itself is the same for all orders of the images.
    of_null = _cka_from_hsic(null, np.diagonal(means))
    index, other = np.indices(means.shape).reshape(2, -1)
    return pd.DataFrame(
        {
            "model": model,
            "index": index,
            "other_index": other,
            "images": images,
            "batches": len(batches),
            "hsic": means.ravel(),
            "cka": cka.ravel(),
            **{name: each.ravel() for name, each in calibrated(cka, of_null).items()},
        }
    )


def cka_without_each_batch(batches: Array) -> list[Any]:
    """Return a list for each pair in order: the CKA of the pair without each batch in turn.

    Only the first of the two orders of a pair has a list, and the second has None. With a single
    batch, both have None.
    """
    count, size, _ = batches.shape
    lists: list[Any] = [None] * size**2
    if count > 1:
        left = _cka_from_hsic((batches.sum(axis=0) - batches) / (count - 1)).astype(np.float32)
        for index, other in zip(*np.triu_indices(size, k=1), strict=True):
            lists[index * size + other] = left[:, index, other]
    return lists


def merge_cka(parts: Parts) -> pd.DataFrame:
    rows = pd.concat(parts.tables)
    batches = _hsic_by_batch(rows)
    images = int(rows.groupby("first_image")["images"].first().sum())
    # Pairs in the order of `np.triu_indices`, for each batch.
    ordered = rows.sort_values(["first_image", "index", "other_index"])["null"]
    upper = np.stack(ordered.to_list()).reshape(len(batches), -1, PERMUTATIONS).mean(0, np.float64)
    null = np.empty((PERMUTATIONS, *batches.shape[1:]))
    index, other = np.triu_indices(batches.shape[1])
    null[:, index, other] = null[:, other, index] = upper.T
    means = _mean_cka(parts.model, images, batches, null)
    vectors = stored_vectors(rows[rows["index"] == rows["other_index"]])
    return means.assign(cka_without=cka_without_each_batch(batches), **mutual_columns(vectors))


def _stored_gram_batches(
    tables: Iterable[pd.DataFrame], vectors: list[pd.DataFrame]
) -> Iterator[tuple[int, Array]]:
    """Yield the first image of each stored batch, and the Gram matrices of all cut points.

    Add the rows without these matrices to `vectors`.
    """
    for table in tables:
        vectors.append(table.drop(columns="gram"))
        for first_image, rows in table.groupby("first_image"):
            images = rows["images"].iloc[0]
            row, column = np.triu_indices(images)
            grams = np.empty((len(rows), images, images))
            grams[:, row, column] = np.stack(rows.sort_values("index")["gram"].to_list())
            grams[:, column, row] = grams[:, row, column]
            yield int(str(first_image)), grams


def merge_cka_between(parts: Parts, others: Parts) -> pd.DataFrame:
    batches, own, images, null = dict[int, Array](), 0, 0, np.zeros(())
    vectors: list[list[pd.DataFrame]] = [[], []]
    for one, other in zip_longest(
        *map(_stored_gram_batches, (parts.tables, others.tables), vectors)
    ):
        if not (one and other and one[0] == other[0] and one[1].shape[1:] == other[1].shape[1:]):
            raise VitscopeError(
                f"The parts of '{parts.model}' and '{others.model}' are of different images: "
                "delete those of both and run again."
            )
        own, images = len(one[1]), images + one[1].shape[-1]
        batches[one[0]] = hsic(np.concatenate([one[1], other[1]]))
        null = null + null_hsic(one[0], one[1], other[1])
    in_order = np.stack([batches[first] for first in sorted(batches)])
    # Of each permutation, what is between the networks; what is within them is not used.
    of_all = np.zeros((PERMUTATIONS, *in_order.shape[1:]))
    # Rounded, since the last digits of the sum depend on the order of the parts.
    of_all[:, :own, own:] = (null / len(batches)).astype(np.float32)
    rows = _mean_cka(parts.model, images, in_order, of_all)
    between = rows[(rows["index"] < own) & (rows["other_index"] >= own)]
    mutual = mutual_columns(*(stored_vectors(pd.concat(each)) for each in vectors))
    return between.assign(
        other_model=others.model, other_index=between["other_index"] - own, **mutual
    ).reset_index(drop=True)
