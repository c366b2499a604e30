"""Move the weights of a model along random directions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256

import numpy as np
import torch
from torch import Tensor, nn

# Parts of the names of position embeddings, which do not move: their rows are not filters.
POSITIONS = ("pos_embed", "relative_position")

EPSILON = 1e-7


def random_direction(name: str, weights: Tensor, seed: int, axis: int) -> Tensor:
    """Return the random, normalized direction in which a parameter moves along an axis.

    The direction depends only on the seed, the axis, and the parameter's name and values. Vectors
    and position embeddings do not move: their direction is zero.
    """
    if weights.ndim < 2 or any(part in name for part in POSITIONS):
        return torch.zeros_like(weights)
    entropy = [seed, axis, int.from_bytes(sha256(name.encode()).digest())]
    rng = np.random.default_rng(entropy)
    drawn = torch.from_numpy(rng.standard_normal(tuple(weights.shape), np.float32))
    values = weights.detach().to("cpu", torch.float32).contiguous()
    scale = values.norm(dim=0, keepdim=True) / (drawn.norm(dim=0, keepdim=True) + EPSILON)
    # Give the direction the memory layout of the weights, so that it is added fast.
    return torch.empty_like(weights).copy_(drawn * scale)


@contextmanager
def moving_weights(
    model: nn.Module, seed: int, pair: int = 0
) -> Iterator[Callable[[float, float], None]]:
    """Yield a function that moves the weights of a model to a point; restore them at the end.

    `pair` is the number of the pair of random directions along which the weights move.

    Weights are changed in place. Each move starts from a copy of the trained weights, so that
    rounding errors do not add up.
    """
    named = {name: parameter.detach() for name, parameter in model.named_parameters()}
    directions = [
        [random_direction(*each, seed, axis) for each in named.items()]
        for axis in (2 * pair, 2 * pair + 1)
    ]
    moving = [index for index, along in enumerate(directions[0]) if along.any()]
    weights = [list(named.values())[index] for index in moving]
    first, second = ([along[index] for index in moving] for along in directions)
    start = [each.clone() for each in weights]

    def move_weights(x: float, y: float) -> None:
        if weights:
            torch._foreach_copy_(weights, start)
            torch._foreach_add_(weights, first, alpha=x)
            torch._foreach_add_(weights, second, alpha=y)

    try:
        yield move_weights
    finally:
        if weights:
            torch._foreach_copy_(weights, start)
