"""Numbers of attention, of each image and head: read while the network runs, and never stored."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from vitscope.data.split import shard_rows
from vitscope.files.arrays import Array
from vitscope.image_size import height_and_width
from vitscope.measures.attending import attention_of
from vitscope.measures.attention.numbers import Numbers, numbers_of
from vitscope.measures.attention.table import VALUES
from vitscope.measures.given import OnModel
from vitscope.networks.attention.reading import Attention, Weights, attending


def measure_attention(given: OnModel, shard: int, selection: Mapping[str, Any]) -> pd.DataFrame:
    """Return the numbers of all attentions, for the images of a shard."""
    network = given.network.eval().to(given.device)
    attentions = attention_of(given)
    size = height_and_width(given.settings["image_size"])
    numbers = numbers_of(attentions, size, given.device)
    rows = shard_rows(len(given.images), shard, **selection)
    # Made before the pass: small arrays that stay would lie between the large ones that go, and
    # keep the memory of these.
    values = [np.empty((len(rows), each.heads, len(VALUES))) for each in attentions]
    first = 0

    def read(position: int, weights: Weights) -> None:
        of_batch = slice(first, first + weights.images)
        values[position][of_batch] = numbers[position].of(weights)

    with attending(network, attentions, read), torch.inference_mode():
        for batch in given.batches(rows):
            network(batch.to(given.device))
            first += len(batch)
    tables = [
        _table(position, each, numbers[position], values[position], rows)
        for position, each in enumerate(attentions)
    ]
    return pd.concat(tables, ignore_index=True)


def _table(
    position: int, attention: Attention, numbers: Numbers, values: Array, rows: Sequence[int]
) -> pd.DataFrame:
    images, heads = values.shape[:2]
    image, head = np.divmod(np.arange(images * heads), heads)
    columns = dict(zip(VALUES, values.reshape(-1, len(VALUES)).T, strict=True))
    return pd.DataFrame(
        {
            "attention": position,
            "name": attention.name,
            "index": attention.index,
            "windows": attention.windows,
            "queries": attention.queries.shape[1],
            "keys": attention.keys.shape[1],
            "distance_uniform": numbers.uniform,
            "distance_anywhere": numbers.anywhere,
            "image": np.asarray(rows)[image],
            "head": head,
            **columns,
        }
    )
