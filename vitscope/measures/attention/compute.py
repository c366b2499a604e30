from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from vitscope.data.split import shard_rows
from vitscope.files.arrays import Array
from vitscope.image_size import height_and_width
from vitscope.measures.attention.heads import EACH_HEAD, average_heads, place_of_attention
from vitscope.measures.attention.measure import VALUES
from vitscope.measures.attention_tokens import attention_of
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.shown import (
    rows_shown,
)
from vitscope.networks.attention.reading import (
    Attention,
    Use,
    Weights,
    attending,
    reading_attention_use,
)
from vitscope.networks.building.networks import own_type

# Added to the weights before rows are normalized again for the NMI (Park et al. 2023).
EPSILON = 1e-8


def attention_statistics(
    attentions: Iterable[Attention], size: tuple[int, int], device: torch.device | None = None
) -> "list[AttentionStatistics]":
    """Return `AttentionStatistics` of each attention, shared by attentions with equal places."""
    known: dict[tuple[object, ...], AttentionStatistics] = {}
    found = []
    for each in attentions:
        where = (each.queries, each.keys)
        places = (*(of.shape for of in where), *(of.tobytes() for of in where))
        if places not in known:
            known[places] = AttentionStatistics(each, size, device)
        found.append(known[places])
    return found


class AttentionStatistics:
    """Computes the distances, the entropy and the NMI of each head, for images of `size` pixels."""

    def __init__(
        self, attention: Attention, size: tuple[int, int], device: torch.device | None = None
    ) -> None:
        self._placed = [*_group_windows_by_places(attention, size, device)]
        self.uniform, self.anywhere = _uniform_distances(attention, size)

    def compute(self, weights: Weights) -> Array:
        """Return the statistics in `VALUES`: (images, heads, statistics), in float64."""
        found = np.full((weights.images, weights.attention.heads, len(VALUES)), np.nan)
        for piece in weights.read_pieces():
            values = self._compute_piece(piece.weights)
            found[piece.images, piece.heads] = values.double().cpu().numpy()
        return found

    def _compute_piece(self, weights: Tensor) -> Tensor:
        weights = weights if weights.dtype is torch.float64 else weights.float()
        entropy = _entropy_of_rows(weights).mean((1, -1))
        undefined = torch.full_like(entropy, torch.nan)
        if not self._placed:
            return torch.stack([undefined, undefined, entropy, undefined], -1)
        # Sum over windows, and over the queries that have a place.
        near = renormalized = nmi = taking = torch.zeros_like(entropy)
        # Count the terms of these sums: queries in `near`, windows in `nmi`.
        queries = windows = 0
        for *placed, distances in self._placed:
            here = _select_placed_attention(weights, placed)
            each = torch.linalg.vecdot(here, distances[:, None].to(here.dtype))
            near = near + each.sum((1, -1))
            queries += here.shape[1] * here.shape[3]
            # If a query attends only to keys without a place, `taken` is 0.
            taken = here.sum(-1)
            anew = torch.where(taken == 0, 0, each / taken)
            renormalized = renormalized + anew.sum((1, -1))
            taking = taking + (taken != 0).sum((1, -1))
            if min(here.shape[-2:]) > 1:
                nmi = nmi + _compute_nmi(here).sum(1)
                windows += here.shape[1]
        mutual = nmi / windows if windows else undefined
        return torch.stack([near / queries, renormalized / taking, entropy, mutual], -1)


def _uniform_distances(attention: Attention, size: tuple[int, int]) -> tuple[float, float]:
    """Return a query's mean distance to the keys of its window, and to the keys of all windows.

    Both are NaN if no query has a place.
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


def _group_windows_by_places(
    attention: Attention, size: tuple[int, int], device: torch.device | None
) -> Iterator[list[Tensor]]:
    """Yield groups of windows in which the same queries and the same keys have a place.

    A group is a list: indices of windows (W,), of queries (Q,) and of keys (K,), and the distances
    (W, Q, K) in pixels.
    """
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
        yield [torch.from_numpy(each).to(device) for each in tensors]


def _select_placed_attention(weights: Tensor, placed: Sequence[Tensor]) -> Tensor:
    """Return the attention from queries to keys with a place; a view unless there are gaps."""
    for dimension, indices in zip((1, 3, 4), placed, strict=True):
        count, first = len(indices), int(indices[0])
        if int(indices[-1]) - first + 1 == count:
            weights = weights.narrow(dimension, first, count)
        else:
            weights = weights.index_select(dimension, indices)
    return weights


def _entropy_of_rows(weights: Tensor) -> Tensor:
    """Return the entropy of each row, in nats."""
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log_()
    summed: Tensor = torch.linalg.vecdot(weights, logs)
    return -summed


def _compute_nmi(weights: Tensor) -> Tensor:
    """Return the mutual information of query and key, normalized by their entropies.

    It is divided by the square root of the product of the entropies. All queries count as equally
    likely. The result is 0 if all queries attend alike. There must be at least two queries and two
    keys.
    """
    raised = weights + EPSILON
    of_key = raised / raised.sum(-1, keepdim=True)
    key = of_key.mean(-2, keepdim=True)
    # Take logarithms of ratios: the difference of two entropies would lose small values.
    information: Tensor = torch.linalg.vecdot(of_key, (of_key / key).log_()).mean(-1)
    entropies: Tensor = _entropy_of_rows(key.squeeze(-2)) * np.log(weights.shape[-2])
    return information / entropies.sqrt()


def measure_attention(given: OnModel, shard: int, selection: Given) -> pd.DataFrame:
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    size = height_and_width(given.settings["image_size"])
    numbers = attention_statistics(attentions, size, given.device)
    rows = shard_rows(len(given.images), shard, **selection)
    # Allocate these arrays before the pass: made during it, they would fragment freed memory.
    values = [np.empty((len(rows), each.heads, len(VALUES))) for each in attentions]
    first = 0

    def keep_statistics(position: int, weights: Weights) -> None:
        of_batch = slice(first, first + weights.images)
        values[position][of_batch] = numbers[position].compute(weights)

    with attending(network, attentions, keep_statistics), torch.inference_mode():
        for batch in given.batches(rows):
            network(batch.to(given.device))
            first += len(batch)
    tables = []
    for position, (attention, computing) in enumerate(zip(attentions, numbers, strict=True)):
        table = _rows_by_head(values[position], VALUES)
        tables.append(
            table.assign(
                attention=position,
                name=attention.name,
                index=attention.index,
                windows=attention.windows,
                queries=attention.queries.shape[1],
                keys=attention.keys.shape[1],
                distance_uniform=computing.uniform,
                distance_anywhere=computing.anywhere,
                image=np.asarray(rows)[table["image"]],
            )
        )
    return pd.concat(tables, ignore_index=True)


def _rows_by_head(values: Array, names: Sequence[str]) -> pd.DataFrame:
    """Return `values` (images, heads, names) as a table with a row for each image and head."""
    image, head = np.divmod(np.arange(values[..., 0].size), values.shape[1])
    columns = dict(zip(names, values.reshape(-1, len(names)).T, strict=True))
    return pd.DataFrame({"image": image, "head": head, **columns})


LOW_PASS_VALUES = ("bound", "let_through", "room")
# The rounding error of float32 in the output of a head, as a share of the norm of its values.
ROUNDING = 1e-5
_TINY = 1e-30


def high_frequencies(tokens: Tensor) -> Tensor:
    """Subtract the mean token from tokens (..., tokens, C)."""
    return tokens - tokens.mean(-2, keepdim=True)


def compute_low_pass_by_head(weights: Tensor, values: Tensor, output: Tensor) -> Tensor:
    """Return `bound`, `let_through` and `room` of the table for each image and head.

    The result is (images, heads, 3); all arguments are (images, windows, heads, rows, columns).
    """
    weights, values, output = (each.double() for each in (weights, values, output))
    bounds = torch.linalg.matrix_norm(high_frequencies(weights), ord=2)
    before, after = (torch.linalg.matrix_norm(high_frequencies(each)) for each in (values, output))
    rounding = ROUNDING * torch.linalg.matrix_norm(values)
    # Subtract what rounding may add: rounding alone would exceed a bound of zero.
    room = 1 - (after - rounding).clamp_min(0) / (bounds * before).clamp_min(_TINY)
    before, after, rounding = (
        torch.linalg.vector_norm(each, dim=1) for each in (before, after, rounding)
    )
    passed = torch.where(before > rounding, after / before, torch.nan)
    return torch.stack([bounds.amax(1), passed, room.amin(1)], -1)


@torch.inference_mode()
def measure_attention_low_pass(given: OnModel, chosen: Given, bootstrap: Given) -> pd.DataFrame:
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    rows = rows_shown(given, **chosen)
    found: dict[Attention, list[Array]] = {each: [] for each in attentions}

    def keep_low_pass(use: Use) -> None:
        if use.weights.shape[-2] > 1:
            found[use.attention].append(compute_low_pass_by_head(*use.by_head())[0].numpy())

    with reading_attention_use(network, attentions, keep_low_pass):
        # Pass one image at a time, so that memory holds the matrices of only one.
        for image in given.batches(rows, 1):
            network(image.to(given.device))
    points = given.blocks.sort_values("index", ignore_index=True)
    tables = []
    for position, (attention, of_images) in enumerate(found.items()):
        shape = (len(rows), attention.heads, len(LOW_PASS_VALUES))
        values = np.stack(of_images) if of_images else np.full(shape, np.nan)
        if own_type(network).itemsize < 4:
            values[..., -1] = np.nan
        least = values[..., -1].min(axis=0)
        by_head = _rows_by_head(values, LOW_PASS_VALUES)
        table = average_heads(by_head, LOW_PASS_VALUES[:2], {"let_through": EACH_HEAD}, **bootstrap)
        place = {
            "attention": position,
            "name": attention.name,
            **place_of_attention(points, attention.index),
        }
        tables.append(table.assign(room=[*least, least.min()], **place))
    return pd.concat(tables, ignore_index=True)
