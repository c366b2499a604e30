"""Maps of the attention of one block, for a few images."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files.arrays import Array
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.attending import attention_of
from vitscope.measures.given import OnModel
from vitscope.measures.shown import images_shown, name_class
from vitscope.measures.tokens import Tokens, tokens_of, whole
from vitscope.networks.attention.reading import Attention, Weights, attending

SECTION = "analysis.attention_maps"


def measure_attention_maps(
    given: OnModel, shows: Mapping[str, Any], chosen: Mapping[str, Any]
) -> pd.DataFrame:
    """Return maps of every head, and of one head for several queries."""
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
        found.extend({**facts, **each, **_on_subject(each, mask)} for each in shown)
    return pd.DataFrame(found).assign(mass=shows["mass"])


def _on_subject(shown: Mapping[str, Any], mask: Array | None) -> dict[str, float | None]:
    """Return the share of the subject in a map, and in the image; null where no mask says it."""
    if mask is None:
        return {"on_subject": None, "subject": None}
    plane = Image.fromarray(mask.astype(np.float32))
    # The mean of the mask over each position.
    covered = np.asarray(plane.resize((shown["width"], shown["height"]), Image.Resampling.BOX))
    weights = np.asarray(shown["weights"])
    return {
        "on_subject": float(weights @ covered.ravel() / weights.sum()),
        "subject": float(covered.mean()),
    }


def attention_named(
    attentions: Sequence[Attention], block: str | int | None, model: str, where: str = SECTION
) -> int:
    """Return which attention is shown; `where` is the section of settings that says it."""
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
    # A block name stands for the attention inside it.
    inside = [n for n, name in enumerate(names) if f"{name}.".startswith(f"{block}.")]
    if not inside:
        raise VitscopeError(
            f"{where}.block: found {quoted(block)}, and models.{model} has no "
            f"attention there; it has {', '.join(names)}.{nearest(block, names)}"
        )
    return inside[-1]


@dataclass(frozen=True)
class _Asked:
    """A query that is shown: a token by its number, or None for the mean of all with a place."""

    shows: str
    of: str
    token: int | None
    heads: Sequence[int]
    row: float | None = None
    column: float | None = None


class Maps:
    """Makes the maps of one attention, for the queries and heads that are asked for."""

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
        """Show heads, or all, of a query: in pixels, or None for what stands for the image."""
        heads = self._heads("heads", range(self.attention.heads) if chosen is None else chosen)
        if query is not None:
            asked = self._query("heads", query, heads)
        elif self._queries.prefix:
            asked = _Asked("heads", "class token", len(self._queries.places), heads)
        else:
            asked = _Asked("heads", "mean of queries", None, heads)
        self._asked.append(asked)

    def show_queries(self, head: int, queries: Sequence[Sequence[float]]) -> None:
        """Show one head for several queries, in pixels; if none, for the middles of quarters."""
        heads = self._heads("head", [head])
        if len(self._queries.places):
            quarters = np.outer((0.25, 0.75), self._size).T
            middles = [[row, column] for row in quarters[0] for column in quarters[1]]
            self._asked += [self._query("queries", each, heads) for each in queries or middles]

    def _heads(self, key: str, chosen: Sequence[int]) -> Sequence[int]:
        there = range(self.attention.heads)
        for head in chosen:
            if head not in there:
                raise VitscopeError(
                    f"{self._where}.{key}: found {head}, allowed for "
                    f"{quoted(self.attention.name)} of models.{self._model}: 0 to {len(there) - 1}."
                )
        return chosen

    def _query(self, shows: str, query: Sequence[float], heads: Sequence[int]) -> _Asked:
        """Return the query that is nearest to a pixel of the image."""
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
        """Yield the maps of an image."""
        found: dict[tuple[int, int], Array] = {}
        for piece in weights.pieces():
            for place, head in enumerate(range(piece.heads.start, piece.heads.stop)):
                matrix = whole(piece.weights[0, :, place].float().cpu(), self._queries, self._keys)
                for number, asked in enumerate(self._asked):
                    if head in asked.heads:
                        found[number, head] = _row(matrix, asked.token, self._queries, self._keys)
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
    """Return the maps of one image, as the network takes it, and what the network returns."""
    found: list[dict[str, Any]] = []

    def read(_: int, weights: Weights) -> None:
        found.extend(maps.of(weights))

    with attending(network, [maps.attention], read), torch.inference_mode():
        returned = network(image)
    return found, returned


def _row(matrix: Tensor, token: int | None, queries: Tokens, keys: Tokens) -> Array:
    """Return what a query takes of each key with a place, or all of them on average."""
    row = matrix[: len(queries.places)].mean(0) if token is None else matrix[token]
    values: Array = row[: len(keys.places)].double().numpy()
    return values
