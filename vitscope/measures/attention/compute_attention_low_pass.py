"""How much of what is not the mean token a head lets through, and how much it can at most."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from vitscope.data.split import shard_rows
from vitscope.files.arrays import Array
from vitscope.measures.attending import attention_of
from vitscope.measures.attention.heads import EACH_HEAD, of_heads, place_of
from vitscope.measures.given import OnModel
from vitscope.networks.attention.reading import Attention, Use, using
from vitscope.networks.building.networks import own_type

VALUES = ("bound", "let_through", "room")
# What float32 may do to what a head returns, as a share of the norm of its values.
ROUNDING = 1e-5
_TINY = 1e-30


def high_frequencies(tokens: Tensor) -> Tensor:
    """Return what is left of tokens, (..., tokens, C), when their mean is taken from each."""
    return tokens - tokens.mean(-2, keepdim=True)


def pass_by_head(weights: Tensor, values: Tensor, output: Tensor) -> Tensor:
    """Return bound, what was let through and room of each image and head: (images, heads, 3).

    What is given is (images, windows, heads, rows, columns).
    """
    weights, values, output = (each.double() for each in (weights, values, output))
    bounds = torch.linalg.matrix_norm(high_frequencies(weights), ord=2)
    before, after = (torch.linalg.matrix_norm(high_frequencies(each)) for each in (values, output))
    rounding = ROUNDING * torch.linalg.matrix_norm(values)
    # A bound of zero is kept by what is rounding alone.
    room = 1 - (after - rounding).clamp_min(0) / (bounds * before).clamp_min(_TINY)
    before, after, rounding = (
        torch.linalg.vector_norm(each, dim=1) for each in (before, after, rounding)
    )
    passed = torch.where(before > rounding, after / before, torch.nan)
    return torch.stack([bounds.amax(1), passed, room.amin(1)], -1)


@torch.inference_mode()
def measure_attention_low_pass(
    given: OnModel, chosen: Mapping[str, Any], bootstrap: Mapping[str, int]
) -> pd.DataFrame:
    """Return what every head lets through of the `chosen` images."""
    if given.blocks is None:
        raise ValueError("heads are placed by the block table")
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    count, seed = chosen["images"], chosen["seed"]
    rows = shard_rows(len(given.images), 0, count, seed, shard_size=count)[: chosen["shown"]]
    found: dict[Attention, list[Array]] = {each: [] for each in attentions}

    def see(use: Use) -> None:
        if use.weights.shape[-2] > 1:
            found[use.attention].append(pass_by_head(*use.by_head())[0].numpy())

    mean, std = given.settings["mean"], given.settings["std"]
    with using(network, attentions, see):
        # One at a time: what is in memory are the matrices of one image.
        for image in given.images.batches(rows, 1, mean, std):
            network(image.to(given.device))
    points = given.blocks.sort_values("index", ignore_index=True)
    tables = []
    for position, (attention, of_images) in enumerate(found.items()):
        shape = (len(rows), attention.heads, len(VALUES))
        values = np.stack(of_images) if of_images else np.full(shape, np.nan)
        if own_type(network).itemsize < 4:
            values[..., -1] = np.nan
        place = place_of(points, attention.index)
        table = _table(values, bootstrap).assign(attention=position, name=attention.name, **place)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _table(values: Array, bootstrap: Mapping[str, int]) -> pd.DataFrame:
    """Return the rows of an attention: of each head, and of all."""
    image, head = np.divmod(np.arange(values[..., 0].size), values.shape[1])
    columns = dict(zip(VALUES, values.reshape(-1, len(VALUES)).T, strict=True))
    rows = pd.DataFrame({"image": image, "head": head, **columns})
    least = values[..., -1].min(axis=0)
    table = of_heads(rows, VALUES[:2], {"let_through": EACH_HEAD}, **bootstrap)
    return table.assign(room=[*least, least.min()])
