from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from tests.helpers.networks import described
from vitscope.networks.attention.finding import FoundAttention, find_attention
from vitscope.networks.attention.reading import Attention, Weights, attending


def found_in(model: nn.Module, image_size: int) -> FoundAttention:
    """Return the attention of a network, without cut points."""
    return find_attention(model, described(image_size), [])


def whole(weights: Weights) -> Tensor:
    """Put the pieces together: (images, windows, heads, queries, keys)."""
    attention = weights.attention
    shape = (weights.images, attention.windows, attention.heads)
    positions = attention.queries.shape[1], attention.keys.shape[1]
    together = torch.full((*shape, *positions), torch.nan, dtype=torch.float64)
    for piece in weights.read_pieces():
        assert together[piece.images, :, piece.heads].isnan().all()
        together[piece.images, :, piece.heads] = piece.weights.double()
    return together


def weights_of(model: nn.Module, attentions: Sequence[Attention], images: Tensor) -> list[Tensor]:
    """Return the attention of some images, each (images, windows, heads, queries, keys).

    In both modes without gradients, in which torch shows other operations, each of which rounds in
    its own way: weights, of which the largest are near one, agree to 1e-5.
    """
    plain, again = (_read(model, attentions, images, mode) for mode in MODES)
    torch.testing.assert_close(plain, again, rtol=0, atol=1e-5)
    return plain


MODES = torch.no_grad, torch.inference_mode


def _read(
    model: nn.Module,
    attentions: Sequence[Attention],
    images: Tensor,
    mode: Callable[[], AbstractContextManager[None]],
) -> list[Tensor]:
    read: list[Tensor] = []

    def keep(number: int, weights: Weights) -> None:
        assert number == len(read)
        read.append(whole(weights))

    with mode(), attending(model, attentions, keep):
        model(images)
    return read


@torch.no_grad()
def sharpened(model: nn.Module, seed: int = 0) -> nn.Module:
    """Give a network random weights with which it attends to little of what there is."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        if parameter.ndim > 1:
            parameter.copy_(2 * noise / parameter[0].numel() ** 0.5)
        elif name.endswith("bias"):
            parameter.add_(0.1 * noise)
    return model.eval()
