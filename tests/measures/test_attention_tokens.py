"""The tokens of attention: each once, whatever windows it has, and what pooled ones are of."""

import numpy as np
import pytest
import torch

from tests.measures.attention.test_numbers import ALL, NOWHERE, attention, grid, windows_of
from vitscope.measures.attention_tokens import (
    attention_pooling_matrix,
    attention_tokens,
    fuse_heads,
    join_attention_windows,
)
from vitscope.networks.attention import reading
from vitscope.networks.attention.reading import Weights


def test_tokens_are_numbered_row_by_row_behind_which_are_those_without_a_place() -> None:
    places = np.concatenate([NOWHERE, ALL, NOWHERE])[None]
    tokens = attention_tokens(places)
    assert (len(tokens), tokens.prefix, tokens.grid) == (18, 2, (4, 4))
    np.testing.assert_allclose(tokens.places, ALL, atol=1e-4)
    assert tokens.numbers.tolist() == [[16, *range(16), 17]]


def test_what_only_fills_windows_is_no_token() -> None:
    tokens = attention_tokens(windows_of(3, 6))
    assert (len(tokens), tokens.prefix, tokens.grid) == (16, 0, (4, 4))
    assert sorted(tokens.numbers.ravel().tolist()) == [-1] * (36 - 16) + [*range(16)]
    # The second window has the last column of three rows.
    assert tokens.numbers[1].tolist() == [3, -1, -1, 7, -1, -1, 11, -1, -1]


def test_the_nearest_token() -> None:
    tokens = attention_tokens(ALL[None])
    for number, (row, column) in enumerate(ALL):
        assert tokens.nearest(row + 0.1, column - 0.1) == number
    assert tokens.nearest(0, 0) == 0
    assert tokens.nearest(1, 0) == 12
    # Of four that are as near, the first.
    assert tokens.nearest(0.25, 0.75) == 2
    assert tokens.nearest(0.75, 0.25) == 8


def test_of_windows_one_matrix() -> None:
    tokens = attention_tokens(windows_of(2, 4))
    weights = torch.rand(3, 4, 4, 4)
    matrix = join_attention_windows(weights, tokens, tokens)
    assert matrix.shape == (3, 16, 16)
    seen = torch.zeros(16, 16, dtype=torch.bool)
    for window, numbers in enumerate(tokens.numbers):
        for query, row in enumerate(numbers):
            for key, column in enumerate(numbers):
                assert torch.equal(matrix[:, row, column], weights[:, window, query, key])
                seen[row, column] = True
    # Nothing is taken of other windows.
    assert seen.sum() == 4 * 16
    assert not matrix[:, ~seen].any()


def test_what_fills_a_window_is_left_out_of_the_matrix() -> None:
    tokens = attention_tokens(windows_of(3, 6))
    matrix = join_attention_windows(torch.ones(4, 9, 9), tokens, tokens)
    assert matrix.sum(1).tolist() == [
        {0: 9, 1: 3, 2: 3, 3: 1}[2 * (row == 3) + (column == 3)]
        for row in range(4)
        for column in range(4)
    ]


def test_pooled_tokens_are_means_of_what_they_cover() -> None:
    old, new = attention_tokens(ALL[None]), attention_tokens(grid(2, 2)[None])
    matrix = attention_pooling_matrix(old, new)
    expected = torch.zeros(4, 16)
    for cell, (row, column) in enumerate([(0, 0), (0, 2), (2, 0), (2, 2)]):
        for number in (4 * row + column, 4 * row + column + 1):
            expected[cell, [number, number + 4]] = 0.25
    assert torch.equal(matrix, expected)
    # The other way, each is of the one that covers it.
    assert torch.equal(attention_pooling_matrix(new, old), (expected.T > 0).float())


def test_what_is_as_near_to_two_is_of_both() -> None:
    """Of a row of five, three: each second one, and halves of those between."""
    row = np.stack([np.full(5, 0.5), np.linspace(0.1, 0.9, 5)], -1)
    matrix = attention_pooling_matrix(attention_tokens(row[None]), attention_tokens(row[None, ::2]))
    third = 1 / 3
    expected = [[0.5, 0.5, 0, 0, 0], [0, third, third, third, 0], [0, 0, 0, 0.5, 0.5]]
    torch.testing.assert_close(matrix, torch.tensor(expected))


def test_tokens_without_a_place_stay() -> None:
    old = attention_tokens(np.concatenate([NOWHERE, NOWHERE, ALL])[None])
    new = attention_tokens(np.concatenate([NOWHERE, grid(2, 2)])[None])
    matrix = attention_pooling_matrix(old, new)
    assert matrix.shape == (5, 18)
    assert matrix[4].nonzero().tolist() == [[16]]
    assert not matrix[:4, 16:].any()
    # There was none before: it is of nothing.
    without = attention_pooling_matrix(attention_tokens(ALL[None]), new)
    assert not without[4].any()
    assert torch.equal(without[:4], matrix[:4, :16])
    same = attention_pooling_matrix(old, old)
    assert torch.equal(same, torch.eye(18))


@pytest.mark.parametrize("bytes_", [1, 2 * 4 * 4 * 16, 1 << 20])
@pytest.mark.parametrize("fusion", ["mean", "max", "min"])
def test_heads_are_put_together_whatever_is_read_at_once(
    fusion: str, bytes_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BYTES_AT_ONCE", bytes_)
    weights = torch.rand(2, 4, 3, 4, 4)
    read = Weights(attention(windows_of(2, 4), heads=3), 2, weights.flatten(0, 2))
    expected = {"mean": weights.mean(2), "max": weights.amax(2), "min": weights.amin(2)}[fusion]
    torch.testing.assert_close(fuse_heads(read, fusion), expected)
