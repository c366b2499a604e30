"""Roll out the attention of all blocks, or its relevance."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from vitscope.measures.attention_tokens import (
    Tokens,
    attention_pooling_matrix,
    attention_tokens,
    fuse_heads,
    join_attention_windows,
)
from vitscope.networks.attention.reading import Attention, Weights, attending


def discard_lowest_attention(weights: Tensor, share: float) -> Tensor:
    """Set the lowest weights, a `share` of all, to zero."""
    kept = weights.flatten().clone()
    order = kept.argsort(stable=True)
    kept[order[: int(share * len(order))]] = 0
    return kept.view_as(weights)


class Rollout:
    """Tracks how much each token of the stream takes from each token of the first attention.

    With `of_relevance`, the weights to `add` are relevance (attention times its gradient) in place
    of attention. Then rows are not normalized, and the result leaves out what a token takes from
    itself, which is nearly everything if gradients are small.
    """

    def __init__(self, attentions: Sequence[Attention], of_relevance: bool = False) -> None:
        self._attentions = attentions
        self.of_relevance = of_relevance
        self._queries = [attention_tokens(each.queries) for each in attentions]
        self._keys = [attention_tokens(each.keys) for each in attentions]
        # If the first attention pools its keys, begin with the tokens before pooling.
        self._first = max(self._keys[0], self._queries[0], key=lambda each: len(each.places))
        # Cache the matrices that pool maps, since they do not depend on the image.
        self._pooling = cache(attention_pooling_matrix)
        self.begin()

    @property
    def grid(self) -> tuple[int, int]:
        """The number of rows and of columns of the map that the first attention reads."""
        return self._first.grid

    def begin(self) -> None:
        self._stream = self._first
        kind = torch.float64 if self.of_relevance else torch.float32
        self._joint = torch.eye(len(self._stream), dtype=kind)
        # What each token would take from itself if no attention moved anything.
        self._own = self._joint.clone() if self.of_relevance else None

    def run(self, network: nn.Module, image: Tensor, heads: str, discard: float = 0.0) -> Any:
        """Roll out all attention for one image (a network input); return the network's output.

        `heads` says how heads are combined: mean, max or min. The lowest weights of each attention,
        a share of `discard`, are then left out.
        """

        def add_attention(position: int, weights: Weights) -> None:
            self.add(position, discard_lowest_attention(fuse_heads(weights, heads)[0], discard))

        self.begin()
        with attending(network, self._attentions, add_attention), torch.inference_mode():
            return network(image)

    def add(self, position: int, weights: Tensor) -> None:
        """Multiply one more attention of an image into the rollout.

        `position` is the index of the attention; its `weights` are (windows, queries, keys).
        """
        queries, keys = self._queries[position], self._keys[position]
        matrix = join_attention_windows(weights.cpu().to(self._joint.dtype), queries, keys)
        if not len(queries.places):
            self._switch_stream(keys)
            rows = slice(len(keys.places), len(keys.places) + queries.prefix)
            own = torch.eye(len(keys))[rows]
            self._joint[rows] = self._normalize_rows(matrix + own) @ self._joint
        elif len(queries) > len(keys):
            # Keys are pooled: divide the attention to a key among the positions that it covers.
            self._switch_stream(queries)
            covered = self._pooling(queries, keys).to(matrix)
            self._joint = (
                self._normalize_rows(matrix @ covered + torch.eye(len(queries))) @ self._joint
            )
        else:
            self._switch_stream(keys)
            if keys.same(queries):
                matrix.diagonal().add_(1)
            else:
                pooling = self._pooling(keys, queries).to(matrix)
                matrix = matrix + pooling
                self._own = None if self._own is None else pooling @ self._own
            self._joint = self._normalize_rows(matrix) @ self._joint
            self._stream = queries

    def _normalize_rows(self, matrix: Tensor) -> Tensor:
        """Normalize the rows of attention, but leave rows of relevance as they are."""
        return matrix if self.of_relevance else matrix / matrix.sum(-1, keepdim=True)

    def _switch_stream(self, tokens: Tokens) -> None:
        """Switch the stream to other tokens, for example after the network pools its map."""
        if not tokens.same(self._stream):
            pooling = self._pooling(self._stream, tokens).to(self._joint)
            self._joint = pooling @ self._joint
            self._own = None if self._own is None else pooling @ self._own
            self._stream = tokens

    def result(self) -> tuple[str, Tensor]:
        """Return the name of the row that is read, and its values, divided by the largest value."""
        placed = len(self._stream.places)
        joint = self._joint if self._own is None else self._joint - self._own
        if self._stream.prefix:
            name, row = "class token", joint[placed]
        else:
            name, row = "mean of queries", joint[:placed].mean(0)
        values = row[: len(self._first.places)]
        # If everything comes from tokens without a place, all values are zero.
        return name, values / values.max().clamp_min(torch.finfo(values.dtype).tiny)
