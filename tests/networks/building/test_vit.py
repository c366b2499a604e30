from itertools import product
from math import exp
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.attending import found_in, sharpened, weights_of
from tests.helpers.networks import build_undrawn
from vitscope.networks.attention.reading import differences_of_read_attention
from vitscope.networks.building.families._parts import keys_in_windows
from vitscope.networks.building.networks import fill, find_family, plain_attention
from vitscope.networks.finding.search import search_for_cut_points

# Images of 20 x 20 pixels are 5 x 5 tokens behind that of the class.
SIZE, SIDE, HEADS, CHANNELS = 20, 5, 2, 8
TOKENS = SIDE**2 + 1
ARCH = {"patch_size": 4, "embed_dim": CHANNELS, "depth": 2, "num_heads": HEADS}
IMAGES = torch.randn(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))


def drawn(window: int | None = None, **others: Any) -> Any:
    """Return a network of the same weights each time."""
    arch = ARCH | others | ({} if window is None else {"attention_window": window})
    torch.manual_seed(0)
    return find_family("vit").build(arch, 10, SIZE)


def vit(window: int | None = None, **others: Any) -> Any:
    """Return a network that attends to little of what there is."""
    return sharpened(drawn(window, **others))


def reached(window: int, query: int, key: int) -> bool:
    """Tell whether a token sees another, from the words of the setting."""
    if 0 in (query, key):
        return True
    (row, column), (of_row, of_column) = (divmod(token - 1, SIDE) for token in (query, key))
    # With itself in the middle; of an even side, one more below and to the right.
    above, below = (window - 1) // 2, window // 2
    return row - above <= of_row <= row + below and column - above <= of_column <= column + below


def by_hand(attention: nn.Module, tokens: Tensor, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of each pair, and what attention makes of the tokens of one image."""
    weight, bias, out, shift = (
        each.detach().double().numpy()
        for layer in (attention.qkv, attention.proj)
        for each in (layer.weight, layer.bias)
    )
    each = (tokens.double().numpy() @ weight.T + bias).reshape(TOKENS, 3, HEADS, -1)
    weights = np.zeros((HEADS, TOKENS, TOKENS))
    made = np.zeros((TOKENS, HEADS, CHANNELS // HEADS))
    for head in range(HEADS):
        for query in range(TOKENS):
            keys = [key for key in range(TOKENS) if reached(window, query, key)]
            products = [float(each[query, 0, head] @ each[key, 1, head]) for key in keys]
            exponentials = [exp(product / (CHANNELS // HEADS) ** 0.5) for product in products]
            for key, exponential in zip(keys, exponentials, strict=True):
                weights[head, query, key] = exponential / sum(exponentials)
                made[query, head] += weights[head, query, key] * each[key, 2, head]
    return weights, made.reshape(TOKENS, CHANNELS) @ out.T + shift


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 8])
def test_it_is_what_sums_over_the_pairs_in_reach_are(window: int, fused: bool) -> None:
    attention = vit(window).blocks[0].attn.double()
    attention.fused_attn = fused
    tokens = torch.randn(TOKENS, CHANNELS, dtype=torch.float64)
    _, expected = by_hand(attention, tokens, window)
    with torch.no_grad():
        found = attention(tokens[None])[0]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("window", [2, 3])
def test_what_is_read_is_nothing_outside_the_window(window: int, fused: bool) -> None:
    model = vit(window)
    attentions = found_in(model, SIZE).attentions
    assert [each.name for each in attentions] == ["blocks.0.attn", "blocks.1.attn"]
    inputs: list[Tensor] = []
    attention = model.blocks[0].attn
    attention.register_forward_hook(lambda _, args, __: inputs.append(args[0].detach()))
    for block in model.blocks:
        block.attn.fused_attn = fused
    for number, read in enumerate(weights_of(model, attentions, IMAGES)):
        pairs = product(range(TOKENS), repeat=2)
        outside = torch.tensor([not reached(window, *pair) for pair in pairs]).view(TOKENS, TOKENS)
        assert outside.any()
        assert (read[..., outside] == 0).all()
        assert (read[..., ~outside] > 0).all()
        torch.testing.assert_close(read.sum(-1), torch.ones_like(read.sum(-1)))
        if number == 0:
            expected, _ = by_hand(attention, inputs[0][1], window)
            np.testing.assert_allclose(read[1, 0].numpy(), expected, rtol=1e-4, atol=1e-6)


def test_queries_and_keys_are_where_those_of_global_attention_are() -> None:
    for ours, theirs in zip(
        *(found_in(vit(window), SIZE).attentions for window in (3, None)), strict=True
    ):
        assert (ours.name, ours.heads, ours.windows, ours.mixed) == (theirs.name, HEADS, 1, False)
        np.testing.assert_array_equal(ours.queries, theirs.queries)
        np.testing.assert_array_equal(ours.keys, theirs.keys)
        assert np.isnan(ours.queries[0, 0]).all()


@pytest.mark.parametrize("window", [2 * SIDE - 1, 2 * SIDE, 100])
def test_a_window_as_large_as_all_offsets_is_global(window: int) -> None:
    model, whole = vit(window), vit()
    with torch.no_grad():
        torch.testing.assert_close(model(IMAGES), whole(IMAGES), rtol=1e-6, atol=1e-6)
        with plain_attention(model), plain_attention(whole):
            assert torch.equal(model(IMAGES), whole(IMAGES))
    smaller = vit(2 * SIDE - 3)
    with torch.no_grad():
        assert not torch.allclose(smaller(IMAGES), whole(IMAGES), rtol=1e-3)


def test_checkpoints_of_local_and_global_attention_are_interchangeable() -> None:
    model, whole = vit(3), vit()
    assert [*model.state_dict()] == [*whole.state_dict()]
    assert [*dict(model.named_parameters())] == [*dict(whole.named_parameters())]
    plain, local = drawn().state_dict(), drawn(3).state_dict()
    # Models of one seed begin with the same weights.
    assert all(torch.equal(plain[name], local[name]) for name in plain)


def test_a_network_that_is_filled_has_the_mask_too() -> None:
    model = vit(3)
    empty = build_undrawn("vit", {**ARCH, "attention_window": 3}, 10, SIZE)
    filled = fill(empty, model.state_dict())
    with torch.no_grad():
        assert torch.equal(filled(IMAGES), model(IMAGES))


@pytest.mark.parametrize("model", [vit(3), vit(class_token=False)])
def test_cut_points_are_those_of_a_plain_vit_and_attention_is_proven(model: Any) -> None:
    points, theirs = (search_for_cut_points(each, IMAGES).points for each in (model, vit()))
    assert [(point.name, point.kind) for point in points] == [
        (point.name, point.kind) for point in theirs
    ]
    attentions = found_in(model, SIZE).attentions
    proven = differences_of_read_attention(model, attentions, IMAGES)
    assert proven.keys() == {"blocks.0.attn", "blocks.1.attn"}
    assert max(proven.values()) < 1e-5


def test_it_has_a_second_derivative() -> None:
    attention = vit(3).blocks[0].attn.double()
    attention.fused_attn = False
    tokens = torch.randn(1, TOKENS, CHANNELS, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(
        lambda x: attention(x)[:, :4].square().sum(), tokens, fast_mode=True
    )


def test_an_even_window_reaches_one_farther_down_and_right() -> None:
    # Tokens 0 to 8 of 3 x 3: the middle one, 4, and that of the corner, 8.
    seen = keys_in_windows(3, 3, 2, 0)
    assert seen[4].nonzero().flatten().tolist() == [4, 5, 7, 8]
    assert seen[8].nonzero().flatten().tolist() == [8]
    # Nothing wraps: the end of a row does not see the beginning of the next.
    assert seen[2].nonzero().flatten().tolist() == [2, 5]


def test_the_mean_of_all_tokens_is_classified() -> None:
    model, images = vit(class_token=False).double(), IMAGES.double()
    with torch.no_grad():
        tokens = model.patch_embed(images) + model.pos_embed
        assert tokens.shape == (3, SIDE**2, CHANNELS)
        for block in model.blocks:
            tokens = block(tokens)
        mean = tokens.mean(dim=1)
        centered = mean - mean.mean(dim=1, keepdim=True)
        normed = centered / (centered.square().mean(dim=1, keepdim=True) + 1e-6).sqrt()
        normed = normed * model.fc_norm.weight + model.fc_norm.bias
        expected = normed @ model.head.weight.T + model.head.bias
        torch.testing.assert_close(model(images), expected, rtol=1e-12, atol=1e-12)


def test_the_setting_that_is_left_out_is_a_token() -> None:
    left_out, said = vit().state_dict(), vit(class_token=True).state_dict()
    assert all(torch.equal(left_out[name], said[name]) for name in left_out)
    assert [*left_out] == [*said]
    assert "cls_token" in left_out
    assert "cls_token" not in vit(class_token=False).state_dict()
    # Without it, windows have no token that sees all.
    mask = vit(3, class_token=False).blocks[0].attn.mask
    assert mask.shape == (SIDE**2, SIDE**2)
    # The corner sees the four of its window.
    assert mask[0].isfinite().nonzero().flatten().tolist() == [0, 1, 5, 6]


def mixing(kind: str, window: int | None = 3) -> Any:
    """Return a network that mixes by position, whose learned scores are no longer alike."""
    model = drawn(window, mixing=kind)
    for name, parameter in model.named_parameters():
        if name.endswith("scores"):
            nn.init.normal_(parameter)
    return model


def test_fixed_mixing_is_sums_of_values_with_weights_of_places() -> None:
    mixer = mixing("fixed").blocks[0].attn.double()
    tokens = torch.randn(2, TOKENS, CHANNELS, dtype=torch.float64)
    values = mixer.value(tokens).reshape(2, TOKENS, HEADS, -1).detach().numpy()
    scores = mixer.scores.detach().numpy()
    expected = np.zeros_like(values)
    for head in range(HEADS):
        for query in range(TOKENS):
            keys = [key for key in range(TOKENS) if reached(3, query, key)]
            weights = [exp(scores[head, query, key]) for key in keys]
            for key, weight in zip(keys, weights, strict=True):
                expected[:, query, head] += weight / sum(weights) * values[:, key, head]
    with torch.no_grad():
        found = mixer(tokens)
        out = mixer.proj(torch.from_numpy(expected.reshape(2, TOKENS, CHANNELS)))
    np.testing.assert_allclose(found.numpy(), out.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("window", [2, 3, None])
def test_static_keys_are_attention_whose_keys_are_those_of_positions(window: int | None) -> None:
    """Attention has the same keys if its tokens are such that its layer makes them."""
    mixer = mixing("static_key", window).blocks[0].attn.double()
    attention = vit(window).blocks[0].attn.double()
    tokens = torch.randn(2, TOKENS, CHANNELS, dtype=torch.float64)
    with torch.no_grad():
        query, key, value = attention.qkv.weight.chunk(3)
        mixer.qv.weight.copy_(torch.cat([query, value]))
        mixer.qv.bias.copy_(torch.cat([attention.qkv.bias.chunk(3)[at] for at in (0, 2)]))
        mixer.proj.load_state_dict(attention.proj.state_dict())
        for image in tokens:
            keys = image @ key.T + attention.qkv.bias.chunk(3)[1]
            mixer.keys.copy_(keys.unflatten(1, (HEADS, -1)).transpose(0, 1))
            one = image[None]
            torch.testing.assert_close(mixer(one), attention(one), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("window", [2, 3, None])
def test_depthwise_mixing_is_sums_of_each_channel_with_weights_of_offsets(
    window: int | None,
) -> None:
    mixer = mixing("depthwise", window).blocks[0].attn.double()
    nn.init.normal_(mixer.conv.weight)
    tokens = torch.randn(2, TOKENS, CHANNELS, dtype=torch.float64)
    values, weight = mixer.value(tokens).detach().numpy(), mixer.conv.weight.detach().numpy()
    rows, columns = mixer.grid
    side = weight.shape[-1]
    expected = np.zeros_like(values)
    expected[:, 0] = values.mean(1)
    for query, key in product(range(1, TOKENS), repeat=2):
        offsets = np.subtract(divmod(key - 1, columns), divmod(query - 1, columns))
        row, column = offsets + (side - 1) // 2
        if 0 <= row < side and 0 <= column < side:
            expected[:, query] += weight[:, 0, row, column] * values[:, key]
    assert 1 + rows * columns == TOKENS
    with torch.no_grad():
        out = mixer.proj(torch.from_numpy(expected))
        # Training multiplies matrices in place of a convolution.
        for found in (mixer.eval()(tokens), mixer.train()(tokens)):
            np.testing.assert_allclose(found.numpy(), out.numpy(), rtol=1e-10, atol=1e-12)


def test_depthwise_mixing_has_the_gradients_of_its_convolution() -> None:
    mixer = mixing("depthwise", None).blocks[0].attn.double()
    tokens = torch.randn(2, TOKENS, CHANNELS, dtype=torch.float64)
    convolved, multiplied = (
        torch.autograd.grad((mixer.train(training)(tokens) ** 2).sum(), [*mixer.parameters()])
        for training in (False, True)
    )
    for one, other in zip(convolved, multiplied, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("window", [2, 3, None])
def test_uniform_mixing_is_attention_without_scores(window: int | None) -> None:
    mixer, attention = mixing("uniform", window).blocks[0].attn, vit(window).blocks[0].attn
    with torch.no_grad():
        attention.qkv.weight[: 2 * CHANNELS] = 0
        attention.qkv.bias[: 2 * CHANNELS] = 0
        mixer.value.weight.copy_(attention.qkv.weight[2 * CHANNELS :])
        mixer.value.bias.copy_(attention.qkv.bias[2 * CHANNELS :])
        mixer.proj.load_state_dict(attention.proj.state_dict())
        tokens = torch.randn(2, TOKENS, CHANNELS)
        torch.testing.assert_close(mixer(tokens), attention(tokens), rtol=1e-5, atol=1e-6)


def test_fixed_mixing_begins_as_a_mean() -> None:
    fixed, uniform = drawn(mixing="fixed"), drawn(mixing="uniform")
    with torch.no_grad():
        assert torch.equal(fixed(IMAGES), uniform(IMAGES))
    learned = {f"blocks.{block}.attn.scores" for block in (0, 1)}
    assert {*fixed.state_dict()} - {*uniform.state_dict()} == learned


@pytest.mark.parametrize("kind", ["fixed", "depthwise", "uniform"])
def test_mixing_by_position_is_no_attention_and_a_cut_point_all_the_same(kind: str) -> None:
    model = mixing(kind)
    assert found_in(model, SIZE).attentions == []
    points = search_for_cut_points(model, IMAGES).points
    assert [point.name for point in points] == [
        point.name for point in search_for_cut_points(vit(3), IMAGES).points
    ]
    assert "msa" not in {point.kind for point in points}
    empty = build_undrawn("vit", {**ARCH, "mixing": kind, "attention_window": 3}, 10, SIZE)
    with torch.no_grad():
        assert torch.equal(fill(empty, model.state_dict())(IMAGES), model(IMAGES))
