"""Read the attention of a model, and find the places of its tokens in the image."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.spatial import cKDTree
from torch import Tensor, nn

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures import registry
from vitscope.measures.given import OnModel
from vitscope.networks.attention.finding import (
    FoundAttention,
    find_attention,
    list_attention_doubts,
    list_refused_attention,
)
from vitscope.networks.attention.reading import Attention, Weights
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.networks.finding.positions import DIGITS

# The largest difference between two distances that count as equal.
TIE = 3 * 10.0**-DIGITS


@dataclass(frozen=True, eq=False)
class Tokens:
    """Holds the queries or the keys of an attention; a token in several windows counts once.

    Tokens with a place come first, row by row: `places` holds row and column as shares of the
    image's height and width. After them come `prefix` tokens without a place, such as the class
    token. `numbers` (windows, positions) holds the index of the token at each position of each
    window, and -1 for padding.
    """

    places: Array
    prefix: int
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.places) + self.prefix

    @property
    def grid(self) -> tuple[int, int]:
        """The number of rows and the number of columns of the grid of places."""
        rows, columns = (len(np.unique(self.places[:, axis])) for axis in (0, 1))
        return rows, columns

    def same(self, other: "Tokens") -> bool:
        """Tell whether both have the same places and the same number of tokens without a place."""
        return self.prefix == other.prefix and np.array_equal(self.places, other.places)

    def nearest(self, row: float, column: float) -> int:
        """Return the index of the token nearest to a place, or the first if several are nearest."""
        distances = np.linalg.norm(self.places - (row, column), axis=1)
        return int(np.argmax(distances <= distances.min() + TIE))


def attention_tokens(places: Array) -> Tokens:
    """Return the tokens at `places` (windows, positions, 2), NaN for a missing place."""
    windows, positions, _ = places.shape
    flat = places.reshape(-1, 2).round(DIGITS)
    placed = ~np.isnan(flat[:, 0])
    unique, inverse = np.unique(flat[placed], axis=0, return_inverse=True)
    numbers = np.full(len(flat), -1)
    numbers[placed] = inverse
    # Positions without a place are tokens if there is a single window, and padding otherwise.
    prefix = int((~placed).sum()) if windows == 1 else 0
    if prefix:
        numbers[~placed] = len(unique) + np.arange(prefix)
    return Tokens(unique, prefix, numbers.reshape(windows, positions))


def attention_pooling_matrix(old: Tokens, new: Tokens) -> Tensor:
    """Return the matrix (new, old) that averages old tokens into new tokens.

    If there are fewer new tokens than old tokens, each old token goes to its nearest new token, or
    to all that are equally near. A new token that gets none this way is the mean of the old tokens
    nearest to it. The n-th new token without a place is the n-th old token without a place; if
    there is none, its weights are zero. The weights of any other new token sum to one.
    """
    matrix = torch.zeros(len(new), len(old))
    if len(old.places) and len(new.places):
        if len(new.places) < len(old.places):
            nearest, olds = _nearest_places(old.places, new.places)
            matrix[nearest, olds] = 1
        empty = np.flatnonzero(matrix[: len(new.places)].sum(1) == 0)
        nearest, news = _nearest_places(new.places[empty], old.places)
        matrix[empty[news], nearest] = 1
    for number in range(min(old.prefix, new.prefix)):
        matrix[len(new.places) + number, len(old.places) + number] = 1
    return matrix / matrix.sum(1, keepdim=True).clamp_min(1)


def _nearest_places(places: Array, others: Array) -> tuple[Array, Array]:
    """Find the nearest of `others` for each of `places`, or several if they are equally near.

    Return two arrays of indices, into `others` and into `places`, with an entry for each pair.
    """
    # Look for up to four: on a grid, no more others can be equally near.
    distances, numbers = cKDTree(others).query(places, k=[*range(1, min(4, len(others)) + 1)])
    whose, which = np.nonzero(distances <= distances[:, :1] + TIE)
    return numbers[whose, which], whose


def join_attention_windows(weights: Tensor, queries: Tokens, keys: Tokens) -> Tensor:
    """Join `weights` (..., windows, queries, keys) of windows into one matrix of all tokens."""
    shape = weights.shape[:-3]
    matrix = weights.new_zeros(*shape, len(queries) + 1, len(keys) + 1)
    rows = torch.from_numpy(queries.numbers)[:, :, None].to(weights.device)
    columns = torch.from_numpy(keys.numbers)[:, None, :].to(weights.device)
    # Padding, numbered -1, goes to the last row and column, which the result leaves out.
    matrix[..., rows, columns] = weights
    return matrix[..., :-1, :-1]


# Maps each fusion to two functions: the first fuses the heads of a piece, the second two pieces.
_FUSED: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "mean": (torch.sum, torch.add),
    "max": (torch.amax, torch.maximum),
    "min": (torch.amin, torch.minimum),
}


def fuse_heads(weights: Weights, fusion: str) -> Tensor:
    """Fuse the heads by mean, max or min; return weights (images, windows, queries, keys)."""
    found: list[Tensor] = []
    fuse, join = _FUSED[fusion]
    for piece in weights.read_pieces():
        of_piece = fuse(piece.weights.float(), 2)
        if piece.heads.start:
            found[-1] = join(found[-1], of_piece)
        else:
            found.append(of_piece)
    fused = torch.cat(found)
    return fused / weights.attention.heads if fusion == "mean" else fused


def attention_of(given: OnModel) -> list[Attention]:
    """Return the attention of a model, and add warnings about attention that cannot be read."""
    where = f"models.{given.model}"
    attentions, warnings = attention_in(given.network, given.settings, given.cut_points, where)
    given.warnings.extend(warnings)
    return attentions


def attention_in(
    network: nn.Module, settings: Mapping[str, Any], cut_points: Sequence[CutPoint], where: str
) -> tuple[list[Attention], list[str]]:
    """Return the attention of a network, and warnings about it; refuse a network without any.

    `where` names the network in errors and warnings.
    """
    found = find_attention(network, settings, cut_points)
    refusal = explain_no_attention(found)
    if refusal is not None:
        raise VitscopeError(f"{where}: {refusal}")
    return found.attentions, [f"{where}: {doubt}" for doubt in list_attention_doubts(found)]


def explain_no_attention(found: FoundAttention) -> str | None:
    """Explain why no attention can be read, and list figures that need none; None if any can."""
    if found.attentions:
        return None
    others = [
        name
        for name, kind in registry.kinds().items()
        if not registry.declared(kind.measure).reads_attention
    ]
    why = (
        f"none of its {len(found.refused)} attentions can be read: {list_refused_attention(found)}"
        if found.refused
        else "no attention was found: nowhere is a softmax taken of products of queries and keys"
    )
    return f"{why}. Kinds of figures that need none are {', '.join(sorted(others))}."
