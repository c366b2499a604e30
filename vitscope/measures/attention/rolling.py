"""Attention multiplied through a network, block by block: no more than one matrix is kept."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.measures.tokens import Tokens, over_heads, pooling, tokens_of, whole
from vitscope.networks.attention.reading import Attention, Weights, attending


def without_lowest(weights: Tensor, share: float) -> Tensor:
    """Return weights whose lowest share is zero."""
    kept = weights.flatten().clone()
    order = kept.argsort(stable=True)
    kept[order[: int(share * len(order))]] = 0
    return kept.view_as(weights)


class Rollout:
    """What the tokens of the stream are of those that the first attention is of, in a pass.

    Where it is `of_relevance` in place of attention, rows are not normalized, and what a token has
    of itself is left out in the end: where gradients are small, it would be nearly all.
    """

    def __init__(self, attentions: Sequence[Attention], of_relevance: bool = False) -> None:
        self._attentions = attentions
        self.of_relevance = of_relevance
        self._queries = [tokens_of(each.queries) for each in attentions]
        self._keys = [tokens_of(each.keys) for each in attentions]
        # Where keys are pooled, those that they are of.
        self._first = max(self._keys[0], self._queries[0], key=lambda each: len(each.places))
        # What a map is of another does not depend on images.
        self._pooling = cache(pooling)
        self.begin()

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of the map that the first attention reads."""
        return self._first.grid

    def begin(self) -> None:
        """Begin with another image."""
        self._stream = self._first
        kind = torch.float64 if self.of_relevance else torch.float32
        self._joint = torch.eye(len(self._stream), dtype=kind)
        # What is there without any attention.
        self._own = self._joint.clone() if self.of_relevance else None

    def run(self, network: nn.Module, image: Tensor, heads: str, discard: float = 0.0) -> Any:
        """Go through all attention of one image, as the network takes it; return what it returns.

        `heads` says how they are put together, and `discard` which share of the weights of each
        attention, the lowest ones, is then left out.
        """

        def read(position: int, weights: Weights) -> None:
            self.add(position, without_lowest(over_heads(weights, heads)[0], discard))

        self.begin()
        with attending(network, self._attentions, read), torch.inference_mode():
            return network(image)

    def add(self, position: int, weights: Tensor) -> None:
        """Go on through an attention, (windows, queries, keys) of one image."""
        queries, keys = self._queries[position], self._keys[position]
        matrix = whole(weights.cpu().to(self._joint.dtype), queries, keys)
        if not len(queries.places):
            self._take(keys)
            rows = slice(len(keys.places), len(keys.places) + queries.prefix)
            own = torch.eye(len(keys))[rows]
            self._joint[rows] = self._shares(matrix + own) @ self._joint
        elif len(queries) > len(keys):
            # Keys are pooled: what is taken of one is shared by the positions that it covers.
            self._take(queries)
            covered = self._pooling(queries, keys).to(matrix)
            self._joint = self._shares(matrix @ covered + torch.eye(len(queries))) @ self._joint
        else:
            self._take(keys)
            if keys.same(queries):
                matrix.diagonal().add_(1)
            else:
                pooling = self._pooling(keys, queries).to(matrix)
                matrix = matrix + pooling
                self._own = None if self._own is None else pooling @ self._own
            self._joint = self._shares(matrix) @ self._joint
            self._stream = queries

    def _shares(self, matrix: Tensor) -> Tensor:
        return matrix if self.of_relevance else matrix / matrix.sum(-1, keepdim=True)

    def _take(self, tokens: Tokens) -> None:
        """Let the stream be of other tokens, as where its map is pooled."""
        if not tokens.same(self._stream):
            pooling = self._pooling(self._stream, tokens).to(self._joint)
            self._joint = pooling @ self._joint
            self._own = None if self._own is None else pooling @ self._own
            self._stream = tokens

    def result(self) -> tuple[str, Tensor]:
        """Return whose row is taken, and what it takes of each position, over the largest."""
        placed = len(self._stream.places)
        joint = self._joint if self._own is None else self._joint - self._own
        if self._stream.prefix:
            name, row = "class token", joint[placed]
        else:
            name, row = "mean of queries", joint[:placed].mean(0)
        values = row[: len(self._first.places)]
        # Nothing of any position is taken where all is of tokens without a place.
        return name, values / values.max().clamp_min(torch.finfo(values.dtype).tiny)
