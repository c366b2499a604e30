"""Distances and maps of the hidden attention of selective scans."""

from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vitscope.data.split import shard_rows
from vitscope.errors import VitscopeError
from vitscope.image_size import height_and_width
from vitscope.measures.attention_tokens import Tokens, join_attention_windows
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.rollout import Rollout
from vitscope.measures.shown import images_shown, name_shown_class
from vitscope.networks.attention.reading import Attention
from vitscope.networks.finding.cut_points import OperationId
from vitscope_scans.finding import scans_of
from vitscope_scans.weights import scanning


def mean_distance(weights: Tensor, places: Tensor) -> float:
    """Return the mean distance from queries to what they take from; tokens with a place are first.

    A query that takes from no token with a place is left out.
    """
    here = weights[: len(places), : len(places)].to(places)
    taken = here.sum(-1)
    distances = torch.linalg.vecdot(here, torch.cdist(places, places))
    return float((distances / taken)[taken > 0].mean())


def measure_scans(given: OnModel, shard: int, selection: Given) -> pd.DataFrame:
    network, blocks = given.network.eval().to(given.device), scans_of(given)
    rows = shard_rows(len(given.images), shard, **selection)
    size = torch.tensor(height_and_width(given.settings["image_size"]))
    places, uniform = {}, {}
    for index, scans in blocks.items():
        places[index] = torch.from_numpy(scans[0].tokens.places) * size
        passed = torch.ones(2 * [len(scans[0].tokens)]).tril()
        passed = passed / passed.sum(-1, keepdim=True)
        alike = [join_attention_windows(passed[None], each.tokens, each.tokens) for each in scans]
        uniform[index] = mean_distance(torch.stack(alike).sum(0), places[index])
    found, first = [], 0

    def keep_distance(index: int, image: int, weights: Tensor) -> None:
        distance = mean_distance(weights, places[index])
        found.append((index, rows[first + image], distance, uniform[index]))

    with scanning(network, blocks, keep_distance), torch.inference_mode():
        for batch in given.batches(rows):
            network(batch.to(given.device))
            first += len(batch)
    return pd.DataFrame(found, columns=["index", "image", "distance", "uniform"])


def measure_scan_maps(given: OnModel, shows: Given, chosen: Given) -> pd.DataFrame:
    network, blocks = given.network.eval().to(given.device), scans_of(given)
    for index, scans in blocks.items():
        rows, columns = scans[0].tokens.grid
        if len(scans[0].tokens.places) != rows * columns:
            raise VitscopeError(
                f"models.{given.model}: what '{given.cut_points[index].name}' scans does not fill "
                f"rows and columns, so that it has no map: leave the model out of this figure."
            )
    number, count = shows["block"], len(blocks)
    if not -count <= number < count:
        raise VitscopeError(
            f"analysis.scan_maps.block: found {number}, allowed for models.{given.model}, which "
            f"has {count} blocks that scan: {-count} to {count - 1}."
        )
    shown = [*blocks][number]
    tokens = blocks[shown][0].tokens
    queries = _queries_of(given, tokens, shows["queries"])
    rollout = Rollout([_as_attention(index, scans[0].tokens) for index, scans in blocks.items()])
    order = {index: place for place, index in enumerate(blocks)}
    maps: list[dict[str, Any]] = []

    def keep_maps(index: int, _: int, weights: Tensor) -> None:
        # A query that takes from nothing has a row of zeros.
        weights = weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
        rollout.add(order[index], weights[None])
        for token, query in queries.items() if index == shown else ():
            values = weights[token, : len(tokens.places)].tolist()
            grid = dict(zip(("height", "width"), tokens.grid, strict=True))
            maps.append({"name": given.cut_points[index].name, "weights": values, **query, **grid})

    found: list[dict[str, Any]] = []
    for row, picture, image in images_shown(given, **chosen):
        maps.clear()
        rollout.begin()
        with scanning(network, blocks, keep_maps), torch.inference_mode():
            returned = network(image)
        of, values = rollout.result()
        height, width = rollout.grid
        rolled = {"shows": "rollout", "of": of, "height": height, "width": width}
        maps.append(
            {**rolled, "weights": values.tolist(), "name": None, "row": None, "column": None}
        )
        facts = {"model": given.model, "image": row, "picture": picture}
        facts |= name_shown_class(given, returned)
        found += [{**facts, **each} for each in maps]
    return pd.DataFrame(found)


def _queries_of(given: OnModel, tokens: Tokens, asked: Any) -> dict[int, dict[str, Any]]:
    """Return the columns that describe each query, by the number of its token."""
    nothing = {"shows": "query", "row": None, "column": None}
    if not asked and tokens.prefix:
        return {len(tokens.places): {**nothing, "of": "class token"}}
    size = np.array(height_and_width(given.settings["image_size"]))
    quarters = [size * (row, column) for row in (0.25, 0.75) for column in (0.25, 0.75)]
    found = {}
    for place in map(np.array, asked or quarters):
        if (place > size).any():
            raise VitscopeError(
                f"analysis.scan_maps.queries: found [{place[0]:g}, {place[1]:g}], and images of "
                f"models.{given.model} have {size[0]} x {size[1]} pixels."
            )
        token = tokens.nearest(*(place / size))
        row, column = (tokens.places[token] * size).tolist()
        found[token] = {**nothing, "of": "query", "row": row, "column": column}
    return found


def _as_attention(index: int, tokens: Tokens) -> Attention:
    """Return attention of one head whose queries and keys are `tokens`, in their order."""
    places = np.concatenate([tokens.places, np.full((tokens.prefix, 2), np.nan)])[None]
    none = OperationId("", ("selective_scan", 0, 0), 0)
    return Attention("", index, none, places, places, 1, 1, np.zeros(1, np.int64))
