"""What attention looks at in images: its maps, and its rollout through a network."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.attending import (
    Tokens,
    attention_of,
    fuse_heads,
    join_windows,
    pooling_matrix,
    tokens_of,
)
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.shown import images_shown, name_class, on_subject, whole_picture
from vitscope.networks.attention.reading import Attention, Weights, attending


def discard_lowest_weights(weights: Tensor, share: float) -> Tensor:
    """Set the lowest weights, a `share` of all, to zero."""
    kept = weights.flatten().clone()
    order = kept.argsort(stable=True)
    kept[order[: int(share * len(order))]] = 0
    return kept.view_as(weights)


class Rollout:
    """Tracks how much each token of the stream takes from each token of the first attention.

    With `of_relevance`, the matrices are of relevance, not of attention: their rows are not
    normalized, and the result leaves out what a token takes from itself, which is nearly everything
    if gradients are small.
    """

    def __init__(self, attentions: Sequence[Attention], of_relevance: bool = False) -> None:
        self._attentions = attentions
        self.of_relevance = of_relevance
        self._queries = [tokens_of(each.queries) for each in attentions]
        self._keys = [tokens_of(each.keys) for each in attentions]
        # If the first attention pools its keys, begin with the tokens before pooling.
        self._first = max(self._keys[0], self._queries[0], key=lambda each: len(each.places))
        # Cache the pooling of maps, which does not depend on the image.
        self._pooling = cache(pooling_matrix)
        self.begin()

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of the map that the first attention reads."""
        return self._first.grid

    def begin(self) -> None:
        self._stream = self._first
        kind = torch.float64 if self.of_relevance else torch.float32
        self._joint = torch.eye(len(self._stream), dtype=kind)
        # What each token would take from itself if no attention moved anything.
        self._own = self._joint.clone() if self.of_relevance else None

    def run(self, network: nn.Module, image: Tensor, heads: str, discard: float = 0.0) -> Any:
        """Roll out all attention for one image, an input of the network; return its output.

        `heads` says how heads are combined: mean, max or min. The lowest weights of each attention,
        a share of `discard`, are then left out.
        """

        def add_attention(position: int, weights: Weights) -> None:
            self.add(position, discard_lowest_weights(fuse_heads(weights, heads)[0], discard))

        self.begin()
        with attending(network, self._attentions, add_attention), torch.inference_mode():
            return network(image)

    def add(self, position: int, weights: Tensor) -> None:
        """Multiply one more attention, (windows, queries, keys) of one image, into the rollout."""
        queries, keys = self._queries[position], self._keys[position]
        matrix = join_windows(weights.cpu().to(self._joint.dtype), queries, keys)
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
        """Normalize the rows of attention; leave those of relevance as they are."""
        return matrix if self.of_relevance else matrix / matrix.sum(-1, keepdim=True)

    def _switch_stream(self, tokens: Tokens) -> None:
        """Switch the stream to other tokens, for example where its map is pooled."""
        if not tokens.same(self._stream):
            pooling = self._pooling(self._stream, tokens).to(self._joint)
            self._joint = pooling @ self._joint
            self._own = None if self._own is None else pooling @ self._own
            self._stream = tokens

    def result(self) -> tuple[str, Tensor]:
        """Return which row is read, and its values at all positions, divided by the largest."""
        placed = len(self._stream.places)
        joint = self._joint if self._own is None else self._joint - self._own
        if self._stream.prefix:
            name, row = "class token", joint[placed]
        else:
            name, row = "mean of queries", joint[:placed].mean(0)
        values = row[: len(self._first.places)]
        # If everything comes from tokens without a place, all values are zero.
        return name, values / values.max().clamp_min(torch.finfo(values.dtype).tiny)


def measure_attention_rollout(
    given: OnModel, heads: str, discard: float, chosen: Given
) -> pd.DataFrame:
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    rollout = Rollout(attentions)
    found = []
    for row, picture, image in images_shown(given, **chosen):
        returned = rollout.run(network, image, heads, discard)
        of, values = rollout.result()
        height, width = rollout.grid
        found.append(
            {
                "model": given.model,
                "image": row,
                "fusion": f"{heads}, lowest {100 * discard:g} % discarded" if discard else heads,
                "of": of,
                "height": height,
                "width": width,
                "rollout": values.double().tolist(),
                **on_subject(values.double().numpy(), (height, width), given.images.mask(row)),
                "picture": picture,
                "whole": whole_picture(given, row),
                **name_class(given, returned),
            }
        )
    return pd.DataFrame(found)


SECTION = "analysis.attention_maps"


def measure_attention_maps(given: OnModel, shows: Given, chosen: Given) -> pd.DataFrame:
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    number = attention_named(attentions, shows["block"], given.model)
    maps = Maps(given.model, given.settings["image_size"], attentions[number])
    maps.show_heads(shows["query"])
    maps.show_queries(shows["head"], shows["queries"])
    found: list[dict[str, Any]] = []
    for row, picture, image in images_shown(given, **chosen):
        facts = {"model": given.model, "attention": number, "image": row, "picture": picture}
        shown, returned = maps_of(network, maps, image)
        facts |= name_class(given, returned)
        mask = given.images.mask(row)
        for each in shown:
            weights, grid = np.asarray(each["weights"]), (each["height"], each["width"])
            found.append({**facts, **each, **on_subject(weights, grid, mask)})
    return pd.DataFrame(found).assign(mass=shows["mass"])


def attention_named(
    attentions: Sequence[Attention], block: str | int | None, model: str, where: str = SECTION
) -> int:
    """Return the index of the attention to show; errors call the section of settings `where`."""
    if block is None:
        placed = [n for n, each in enumerate(attentions) if not np.isnan(each.queries).all()]
        return placed[-1] if placed else len(attentions) - 1
    if isinstance(block, int):
        if -len(attentions) <= block < len(attentions):
            return block % len(attentions)
        raise VitscopeError(
            f"{where}.block: found {block}, allowed for models.{model}, which has "
            f"{len(attentions)} attentions: {-len(attentions)} to {len(attentions) - 1}, or a name."
        )
    names = [each.name for each in attentions]
    # A block's name stands for the attention inside the block.
    inside = [n for n, name in enumerate(names) if f"{name}.".startswith(f"{block}.")]
    if not inside:
        raise VitscopeError(
            f"{where}.block: found {quoted(block)}, and models.{model} has no "
            f"attention there; it has {', '.join(names)}.{nearest(block, names)}"
        )
    return inside[-1]


class _Asked(NamedTuple):
    """A query to show: the index of a token, or None for the mean of all tokens with a place."""

    shows: str
    of: str
    token: int | None
    heads: Sequence[int]
    row: float | None = None
    column: float | None = None


class Maps:
    """Makes the maps of one attention for the requested queries and heads."""

    def __init__(
        self, model: str, image_size: ImageSize, attention: Attention, where: str = SECTION
    ) -> None:
        self.attention = attention
        self._model, self._where = model, where
        self._size = np.array(height_and_width(image_size))
        self._queries, self._keys = tokens_of(attention.queries), tokens_of(attention.keys)
        self._asked: list[_Asked] = []

    def show_heads(
        self, query: Sequence[float] | None, chosen: Sequence[int] | None = None
    ) -> None:
        """Request maps of the chosen heads, or of all, for a query at [row, column] in pixels.

        Without a query, the maps are of the class token or, if there is none, the mean of queries.
        """
        heads = self._check_heads(
            "heads", range(self.attention.heads) if chosen is None else chosen
        )
        if query is not None:
            asked = self._request_query("heads", query, heads)
        elif self._queries.prefix:
            asked = _Asked("heads", "class token", len(self._queries.places), heads)
        else:
            asked = _Asked("heads", "mean of queries", None, heads)
        self._asked.append(asked)

    def show_queries(self, head: int, queries: Sequence[Sequence[float]]) -> None:
        """Request maps of one head for queries in pixels, or for the middles of the quarters."""
        heads = self._check_heads("head", [head])
        if len(self._queries.places):
            quarters = np.outer((0.25, 0.75), self._size).T
            middles = [[row, column] for row in quarters[0] for column in quarters[1]]
            self._asked += [
                self._request_query("queries", each, heads) for each in queries or middles
            ]

    def _check_heads(self, key: str, chosen: Sequence[int]) -> Sequence[int]:
        there = range(self.attention.heads)
        for head in chosen:
            if head not in there:
                raise VitscopeError(
                    f"{self._where}.{key}: found {head}, allowed for "
                    f"{quoted(self.attention.name)} of models.{self._model}: 0 to {len(there) - 1}."
                )
        return chosen

    def _request_query(self, shows: str, query: Sequence[float], heads: Sequence[int]) -> _Asked:
        place = np.array(query)
        if (place < 0).any() or (place > self._size).any():
            raise VitscopeError(
                f"{self._where}: found the query {list(query)}, and images of "
                f"models.{self._model} have {' x '.join(map(str, self._size))} pixels."
            )
        if not len(self._queries.places):
            raise VitscopeError(
                f"{self._where}: {quoted(self.attention.name)} of models.{self._model} "
                f"has no queries with a place: name another block, or leave the query out."
            )
        token = self._queries.nearest(*(place / self._size))
        row, column = self._queries.places[token] * self._size
        return _Asked(shows, "query", token, heads, float(row), float(column))

    def of(self, weights: Weights) -> Iterator[dict[str, Any]]:
        """Yield a row of the table for each requested map of one image."""
        found: dict[tuple[int, int], Array] = {}
        for piece in weights.read_pieces():
            for place, head in enumerate(range(piece.heads.start, piece.heads.stop)):
                matrix = join_windows(
                    piece.weights[0, :, place].float().cpu(), self._queries, self._keys
                )
                for number, asked in enumerate(self._asked):
                    if head in asked.heads:
                        token, places = asked.token, len(self._queries.places)
                        row = matrix[:places].mean(0) if token is None else matrix[token]
                        found[number, head] = row[: len(self._keys.places)].double().numpy()
        height, width = self._keys.grid
        for (number, head), values in sorted(found.items()):
            asked = self._asked[number]
            yield {
                "name": self.attention.name,
                "shows": asked.shows,
                "of": asked.of,
                "query_row": asked.row,
                "query_column": asked.column,
                "head": head,
                "height": height,
                "width": width,
                "weights": values.tolist(),
            }


def maps_of(network: nn.Module, maps: Maps, image: Tensor) -> tuple[list[dict[str, Any]], Any]:
    """Return the maps of one image, an input of the network, and the network's output."""
    found: list[dict[str, Any]] = []

    def keep_maps(_: int, weights: Weights) -> None:
        found.extend(maps.of(weights))

    with attending(network, [maps.attention], keep_maps), torch.inference_mode():
        returned = network(image)
    return found, returned
