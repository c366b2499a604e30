"""The maps of an attention over images."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.attention_tokens import (
    attention_of,
    attention_tokens,
    join_attention_windows,
)
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.rollout import Rollout
from vitscope.measures.shown import images_shown, name_shown_class, on_subject, whole_picture
from vitscope.networks.attention.reading import Attention, Weights, attending

SECTION = "analysis.attention_maps"


def measure_attention_maps(given: OnModel, shows: Given, chosen: Given) -> pd.DataFrame:
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    number = attention_for_maps(attentions, shows["block"], given.model)
    maps = AttentionMaps(given.model, given.settings["image_size"], attentions[number])
    maps.request_heads(shows["query"])
    maps.request_queries(shows["head"], shows["queries"])
    found: list[dict[str, Any]] = []
    for row, picture, image in images_shown(given, **chosen):
        facts = {"model": given.model, "attention": number, "image": row, "picture": picture}
        shown, returned = maps_of(network, maps, image)
        facts |= name_shown_class(given, returned)
        mask = given.images.mask(row)
        for each in shown:
            weights, grid = np.asarray(each["weights"]), (each["height"], each["width"])
            found.append({**facts, **each, **on_subject(weights, grid, mask)})
    return pd.DataFrame(found).assign(mass=shows["mass"])


def attention_for_maps(
    attentions: Sequence[Attention], block: str | int | None, model: str, where: str = SECTION
) -> int:
    """Return the index of the attention to show; `where` names the settings section in errors."""
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
    # The name of a block stands for the last attention inside the block.
    inside = [n for n, name in enumerate(names) if f"{name}.".startswith(f"{block}.")]
    if not inside:
        raise VitscopeError(
            f"{where}.block: found {quoted(block)}, and models.{model} has no "
            f"attention there; it has {', '.join(names)}.{nearest(block, names)}"
        )
    return inside[-1]


class _Asked(NamedTuple):
    """A query to show; `token` is its index, or None for the mean of all tokens with a place."""

    shows: str
    of: str
    token: int | None
    heads: Sequence[int]
    row: float | None = None
    column: float | None = None


class AttentionMaps:
    """Makes the maps of one attention for the requested queries and heads."""

    def __init__(
        self, model: str, image_size: ImageSize, attention: Attention, where: str = SECTION
    ) -> None:
        self.attention = attention
        self._model, self._where = model, where
        self._size = np.array(height_and_width(image_size))
        self._queries, self._keys = (
            attention_tokens(attention.queries),
            attention_tokens(attention.keys),
        )
        self._asked: list[_Asked] = []

    def request_heads(
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

    def request_queries(self, head: int, queries: Sequence[Sequence[float]]) -> None:
        """Request maps of one head for queries in pixels, by default the middles of quarters."""
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
                matrix = join_attention_windows(
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


def maps_of(
    network: nn.Module, maps: AttentionMaps, image: Tensor
) -> tuple[list[dict[str, Any]], Any]:
    """Return the maps of one image (a network input), and the network's output."""
    found: list[dict[str, Any]] = []

    def keep_maps(_: int, weights: Weights) -> None:
        found.extend(maps.of(weights))

    with attending(network, [maps.attention], keep_maps), torch.inference_mode():
        returned = network(image)
    return found, returned


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
                **name_shown_class(given, returned),
            }
        )
    return pd.DataFrame(found)
