"""The variance behind a norm over channels: against torch's LayerNorm, and by algebra."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import vitscope
from vitscope.measures.feature_variance.compute import normalized_variance

SHAPES = st.tuples(st.integers(1, 3), st.integers(2, 9), st.integers(1, 6), st.integers(2, 6))


def drawn(shape: tuple[int, ...], seed: int, mean: float = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 1, shape).astype(np.float32)


def oracle(maps: Tensor) -> np.ndarray:
    """Return the variance over space of what torch's LayerNorm returns, mean over channels."""
    tokens = maps.double().flatten(2).transpose(1, 2)
    return nn.functional.layer_norm(tokens, tokens.shape[2:], eps=0).var(1).mean(1).numpy()


@settings(max_examples=50)
@given(SHAPES, st.floats(-100, 100), st.integers(0, 99))
def test_it_is_the_variance_of_a_layer_norm(
    shape: tuple[int, int, int, int], mean: float, seed: int
) -> None:
    maps = drawn(shape, seed, mean)
    expected = oracle(torch.from_numpy(maps))
    np.testing.assert_allclose(normalized_variance(maps), expected, rtol=1e-9, atol=1e-12)
    tensors = normalized_variance(torch.from_numpy(maps)).numpy()
    np.testing.assert_allclose(tensors, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=20)
@given(SHAPES, st.integers(0, 99))
def test_it_is_one_less_the_mean_cosine_of_positions(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    maps = drawn(shape, seed)
    for image, value in zip(maps, normalized_variance(maps), strict=True):
        # `corrcoef` subtracts the mean of each position's channels.
        cosines = np.corrcoef(image.reshape(shape[1], -1).T.astype(np.float64))
        different = ~np.eye(len(cosines), dtype=bool)
        assert value == pytest.approx(1 - cosines[different].mean(), rel=1e-9, abs=1e-12)


def test_neither_scale_nor_offset_of_a_position_counts() -> None:
    maps = drawn((2, 5, 4, 3), 0)
    changed = maps * drawn((2, 1, 4, 3), 1).__abs__() + drawn((2, 1, 4, 3), 2)
    np.testing.assert_allclose(normalized_variance(changed), normalized_variance(maps), rtol=1e-5)


def test_positions_alike_opposite_and_constant() -> None:
    one = drawn((1, 6, 1, 1), 0)
    alike = np.broadcast_to(one, (1, 6, 2, 2))
    assert normalized_variance(alike) == pytest.approx([0], abs=1e-12)
    # Two positions, one the negative of the other: plus and minus 1 over both, unbiased.
    assert normalized_variance(np.concatenate([one, -one], 3)) == pytest.approx([2])
    # A constant position becomes 0 and the other has a mean square of 1: the variance of both.
    assert normalized_variance(np.concatenate([one, 0 * one + 7], 3)) == pytest.approx([0.5])
    assert normalized_variance(np.full((1, 6, 2, 2), 3, np.float32)).tolist() == [0]


@pytest.mark.parametrize("name", ["vit", "mixer"])
def test_hooks_by_hand_on_bundled_networks(name: str) -> None:
    """Read the norms' inputs by hooks, normalize them by torch, and compare every cut point."""
    given = vitscope.bundled(name, 8)
    table = vitscope.look(**given).normalized_variance
    model, pixels = given["model"].eval(), torch.from_numpy(given["images"]).float() / 255
    mean, std = (torch.tensor(given[key])[:, None, None] for key in ("mean", "std"))
    read: list[Tensor] = []
    norms = [norm for block in model.blocks for norm in (block.norm1, block.norm2)] + [model.norm]
    hooks = [norm.register_forward_pre_hook(lambda _, args: read.append(args[0])) for norm in norms]
    with torch.no_grad():
        model((pixels - mean) / std)
    for hook in hooks:
        hook.remove()
    prefix = getattr(model, "num_prefix_tokens", 0)
    expected = [
        oracle(tokens[:, prefix:].transpose(1, 2).unflatten(2, (1, -1))).mean() for tokens in read
    ]
    assert table["normalized_variance"].tolist() == pytest.approx(expected, rel=1e-6)
