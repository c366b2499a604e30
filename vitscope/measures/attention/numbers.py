"""What is said of attention in numbers: distance, entropy, mutual information; for each head.

A query spreads one unit of attention over keys. What has no place in the image, such as the token
of the class, is left out of distance and mutual information, as a query and as a key.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from vitscope.files.arrays import Array
from vitscope.measures.attention.table import VALUES
from vitscope.networks.attention.reading import Attention, Weights

# What is added to attention before it is normalized anew (Park et al. 2023).
EPSILON = 1e-8


class _Placed(NamedTuple):
    """Windows in which the same queries and the same keys have places; how far these lie apart.

    `distances` are in pixels: (windows, queries, keys).
    """

    windows: Tensor
    queries: Tensor
    keys: Tensor
    distances: Tensor


def numbers_of(
    attentions: Iterable[Attention], size: tuple[int, int], device: torch.device | None = None
) -> "list[Numbers]":
    """Return what computes the numbers of each attention, one for the same places."""
    known: dict[tuple[object, ...], Numbers] = {}
    found = []
    for each in attentions:
        where = (each.queries, each.keys)
        places = (*(of.shape for of in where), *(of.tobytes() for of in where))
        if places not in known:
            known[places] = Numbers(each, size, device)
        found.append(known[places])
    return found


class Numbers:
    """Computes the numbers of heads whose queries and keys have places of an attention.

    `size` is the size of images, in pixels.
    """

    def __init__(
        self, attention: Attention, size: tuple[int, int], device: torch.device | None = None
    ) -> None:
        self._placed = [*_placed(attention, size, device)]
        self.uniform, self.anywhere = _uniform(attention, size)

    def of(self, weights: Weights) -> Array:
        """Return the numbers of each image and head, (images, heads, values), in float64."""
        found = np.full((weights.images, weights.attention.heads, len(VALUES)), np.nan)
        for piece in weights.pieces():
            values = self._piece(piece.weights)
            found[piece.images, piece.heads] = values.double().cpu().numpy()
        return found

    def _piece(self, weights: Tensor) -> Tensor:
        weights = weights if weights.dtype is torch.float64 else weights.float()
        entropy = _minus_sum_of_logs(weights).mean((1, -1))
        undefined = torch.full_like(entropy, torch.nan)
        if not self._placed:
            return torch.stack([undefined, undefined, entropy, undefined], -1)
        # Sums over the windows, and over the queries that have a place; and of how many they are.
        near = renormalized = nmi = taking = torch.zeros_like(entropy)
        queries = windows = 0
        for placed in self._placed:
            here = _chosen(weights, placed)
            each = torch.linalg.vecdot(here, placed.distances[:, None].to(here.dtype))
            near = near + each.sum((1, -1))
            queries += here.shape[1] * here.shape[3]
            # Of keys with a place a query may take nothing at all.
            taken = here.sum(-1)
            anew = torch.where(taken == 0, 0, each / taken)
            renormalized = renormalized + anew.sum((1, -1))
            taking = taking + (taken != 0).sum((1, -1))
            if min(here.shape[-2:]) > 1:
                nmi = nmi + _nmi(here).sum(1)
                windows += here.shape[1]
        mutual = nmi / windows if windows else undefined
        return torch.stack([near / queries, renormalized / taking, entropy, mutual], -1)


def _uniform(attention: Attention, size: tuple[int, int]) -> tuple[float, float]:
    """Return the mean distance of a query to the keys of its window, and of all windows.

    NaN where no query has a place.
    """
    of_queries = attention.queries * size
    everywhere = (attention.keys * size).reshape(-1, 2)
    everywhere = everywhere[~np.isnan(everywhere[:, 0])]
    within, anywhere = [], []
    for queries, keys in zip(of_queries, attention.keys * size, strict=True):
        placed = queries[~np.isnan(queries[:, 0])]
        if len(placed) and len(everywhere):
            anywhere.append(cdist(placed, everywhere).mean(axis=1))
            within.append(cdist(placed, keys[~np.isnan(keys[:, 0])]).mean(axis=1))
    if not within:
        return np.nan, np.nan
    return float(np.concatenate(within).mean()), float(np.concatenate(anywhere).mean())


def _placed(
    attention: Attention, size: tuple[int, int], device: torch.device | None
) -> Iterator[_Placed]:
    """Yield windows by which of their queries and keys have places."""
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    of_queries = ~np.isnan(attention.queries[..., 0])
    of_keys = ~np.isnan(attention.keys[..., 0])
    for window, (queries, keys) in enumerate(zip(of_queries, of_keys, strict=True)):
        if queries.any() and keys.any():
            groups.setdefault((queries.tobytes(), keys.tobytes()), []).append(window)
    for windows in groups.values():
        queries = np.flatnonzero(of_queries[windows[0]])
        keys = np.flatnonzero(of_keys[windows[0]])
        places = (
            attention.queries[windows][:, queries] * size,
            attention.keys[windows][:, keys] * size,
        )
        distances = np.linalg.norm(places[0][:, :, None] - places[1][:, None], axis=-1)
        tensors = (np.array(windows), queries, keys, distances.astype(np.float32))
        yield _Placed(*(torch.from_numpy(each).to(device) for each in tensors))


def _chosen(weights: Tensor, placed: _Placed) -> Tensor:
    """Return the attention of queries with a place to keys with one; no copy where all have."""
    chosen = ((1, placed.windows), (3, placed.queries), (4, placed.keys))
    for dimension, indices in chosen:
        count, first = len(indices), int(indices[0])
        if int(indices[-1]) - first + 1 == count:
            weights = weights.narrow(dimension, first, count)
        else:
            weights = weights.index_select(dimension, indices)
    return weights


def _minus_sum_of_logs(weights: Tensor) -> Tensor:
    """Return the entropy of each row, in nats."""
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log_()
    summed: Tensor = torch.linalg.vecdot(weights, logs)
    return -summed


def _nmi(weights: Tensor) -> Tensor:
    """Return the mutual information of query and key over the root of their entropies.

    All queries are equally likely. It is 0 where each of them attends alike; there are two queries
    and two keys at least.
    """
    raised = weights + EPSILON
    of_key = raised / raised.sum(-1, keepdim=True)
    key = of_key.mean(-2, keepdim=True)
    # Of ratios: the difference of two entropies would lose what is small.
    information: Tensor = torch.linalg.vecdot(of_key, (of_key / key).log_()).mean(-1)
    entropies: Tensor = _minus_sum_of_logs(key.squeeze(-2)) * np.log(weights.shape[-2])
    return information / entropies.sqrt()
