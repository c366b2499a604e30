"""Numbers of attention: in closed form, against golden values, and against those by hand."""

from math import log, sqrt

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.golden import Golden
from tests.helpers.networks import described
from tests.helpers.tiers import some_of
from tests.measures.attention.by_hand import seen
from vitscope.measures.attention.compute import EPSILON, AttentionStatistics, attention_statistics
from vitscope.measures.attention.measure import VALUES
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import Attention, Weights, attending
from vitscope.networks.finding.cut_points import OperationId

Array = npt.NDArray[np.float64]
# Pixels of an image.
SIZE = (24, 24)
SIDE = 4
TOKENS = SIDE**2
NOWHERE = np.full((1, 2), np.nan)


def grid(rows: int, columns: int) -> Array:
    """Return the middles of cells of an image, row by row, as shares of its sides."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    return np.stack([(row + 0.5) / rows, (column + 0.5) / columns], -1)


ALL = grid(SIDE, SIDE)


def attention(queries: Array, keys: Array | None = None, heads: int = 1) -> Attention:
    """Return an attention whose places are images, windows and heads in this order."""
    keys = queries if keys is None else keys
    together = len(queries) * heads
    softmax = OperationId("a", ("attention", 0, 0), 0)
    return Attention("a", 0, softmax, queries, keys, heads, together, np.arange(together))


def numbers(
    weights: Tensor, queries: Array, keys: Array | None = None, size: tuple[int, int] = SIZE
) -> dict[str, Array]:
    """Return the numbers of weights (images, windows, heads, queries, keys): (images, heads)."""
    images, _, heads, _, _ = weights.shape
    placed = attention(queries, keys, heads)
    found = AttentionStatistics(placed, size).compute(
        Weights(placed, images, weights.flatten(0, 2))
    )
    assert found.shape == (images, heads, len(VALUES))
    return dict(zip(VALUES, np.moveaxis(found, -1, 0), strict=True))


def of_one(weights: Tensor, *places: Array, size: tuple[int, int] = SIZE) -> dict[str, float]:
    found = numbers(weights[None, None, None], *(each[None] for each in places), size=size)
    return {name: float(values.item()) for name, values in found.items()}


def even(queries: int, keys: int) -> Tensor:
    return torch.full((queries, keys), 1 / keys, dtype=torch.float64)


def approx(value: float) -> object:
    return pytest.approx(value, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_of_attention_to_all_alike(dtype: torch.dtype) -> None:
    found = of_one(even(TOKENS, TOKENS).to(dtype), ALL)
    tolerance = 1e-7 if dtype is torch.float64 else 1e-6
    assert found["entropy"] == pytest.approx(log(TOKENS), rel=tolerance)
    assert found["nmi"] == pytest.approx(0, abs=1e-7)
    assert found["distance"] == pytest.approx(found["distance_renormalized"], rel=tolerance)
    uniform = AttentionStatistics(attention(ALL[None]), SIZE)
    assert found["distance"] == pytest.approx(uniform.uniform, rel=tolerance)
    assert uniform.anywhere == uniform.uniform


def test_the_distance_in_a_row() -> None:
    """Of all pairs of n numbers from 1 to n, the mean difference is (n² - 1) / 3n."""
    count = 7
    row = grid(1, count)
    size = (10, 6 * count)
    found = of_one(even(count, count), row, size=size)
    assert found["distance"] == approx(6 * (count**2 - 1) / (3 * count))


def test_the_distance_in_a_square() -> None:
    found = of_one(even(4, 4), grid(2, 2))
    assert found["distance"] == approx(12 * (0 + 1 + 1 + sqrt(2)) / 4)
    # Images need not be as wide as they are high.
    found = of_one(even(4, 4), grid(2, 2), size=(24, 10))
    assert found["distance"] == approx((0 + 12 + 5 + 13) / 4)


def nmi_of_one_key_each(count: int) -> float:
    """What is added to attention is all that a query takes of other keys than its own."""
    own, other = (1 + EPSILON) / (1 + count * EPSILON), EPSILON / (1 + count * EPSILON)
    left = own * log(own) + (count - 1) * other * log(other)
    return 1 + left / log(count)


def test_of_attention_to_oneself() -> None:
    found = of_one(torch.eye(TOKENS, dtype=torch.float64), ALL)
    assert found["distance"] == found["distance_renormalized"] == 0
    assert found["entropy"] == approx(0)
    assert found["nmi"] == pytest.approx(nmi_of_one_key_each(TOKENS), abs=1e-12)
    # All but what is added: of 16 keys, 15 times 1e-8 and its logarithm.
    assert found["nmi"] == pytest.approx(1, abs=TOKENS * EPSILON * -log(EPSILON))


def test_of_two_halves_that_look_at_each_other() -> None:
    """Which half a key is in is one bit of the two that a query's own place is."""
    weights = torch.kron(torch.tensor([[0, 1], [1, 0]]), torch.full((2, 2), 0.5)).double()
    found = of_one(weights, grid(1, 4), size=(4, 4))
    assert found["entropy"] == approx(log(2))
    assert found["nmi"] == pytest.approx(0.5, abs=1e-6)
    # From 0 and 1 to 2 and 3: 2, 3, 1 and 2 pixels; the other way the same.
    assert found["distance"] == approx(2)


def test_tokens_without_a_place_are_left_out() -> None:
    """The class takes a quarter of all that others have, and looks at one token itself."""
    places = np.concatenate([NOWHERE, ALL])
    weights = torch.zeros(TOKENS + 1, TOKENS + 1, dtype=torch.float64)
    weights[1:, 0], weights[1:, 1:] = 0.25, 0.75 / TOKENS
    weights[0, 5] = 1
    found, without = of_one(weights, places), of_one(even(TOKENS, TOKENS), ALL)
    assert found["distance"] == approx(0.75 * without["distance"])
    assert found["distance_renormalized"] == approx(without["distance"])
    assert found["nmi"] == pytest.approx(0, abs=1e-12)
    of_tokens = 0.25 * log(4) + 0.75 * log(TOKENS / 0.75)
    assert found["entropy"] == approx(TOKENS * of_tokens / (TOKENS + 1))


def test_the_token_of_the_class_alone_has_an_entropy_and_nothing_else() -> None:
    keys = np.concatenate([NOWHERE, ALL])
    found = of_one(even(1, TOKENS + 1), NOWHERE, keys)
    assert found.pop("entropy") == approx(log(TOKENS + 1))
    assert [*found] == ["distance", "distance_renormalized", "nmi"]
    assert all(np.isnan([*found.values()]))
    uniform = AttentionStatistics(attention(NOWHERE[None], keys[None]), SIZE)
    assert np.isnan([uniform.uniform, uniform.anywhere]).all()


def test_of_one_query_or_one_key_nothing_is_mutual() -> None:
    found = of_one(even(1, TOKENS), ALL[:1], ALL)
    assert np.isnan(found["nmi"])
    assert found["distance"] == approx(np.linalg.norm((ALL - ALL[0]) * SIZE, axis=1).mean())
    found = of_one(even(TOKENS, 1), ALL, grid(1, 1))
    assert np.isnan(found["nmi"])
    assert found["entropy"] == approx(0)


def test_queries_that_take_of_nothing_with_a_place_are_no_part_of_what_is_renormalized() -> None:
    places = np.concatenate([NOWHERE, ALL])
    weights = torch.eye(TOKENS + 1, dtype=torch.float64)[[0, 2, 1, *range(3, TOKENS + 1)]]
    # The first two swap. Others look at themselves but for the last two, which look at the class.
    weights[-2:] = weights[0]
    found = of_one(weights, places)
    assert found["distance"] == approx(2 * 6 / TOKENS)
    assert found["distance_renormalized"] == approx(2 * 6 / (TOKENS - 2))
    found = of_one(torch.eye(TOKENS + 1, dtype=torch.float64)[[0] * (TOKENS + 1)], places)
    assert found["distance"] == 0
    assert np.isnan(found["distance_renormalized"])


def windows_of(side: int, padded: int) -> Array:
    """Return the places in windows of a map that is filled up to a larger one: (windows, q, 2)."""
    filled = np.full((padded, padded, 2), np.nan)
    filled[:SIDE, :SIDE] = ALL.reshape(SIDE, SIDE, 2)
    count = padded // side
    return filled.reshape(count, side, count, side, 2).swapaxes(1, 2).reshape(-1, side**2, 2)


def test_windows_are_averaged() -> None:
    places = windows_of(2, 4)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(3, 4, 2, 4, 4, generator=generator, dtype=torch.float64)
    weights = weights / weights.sum(-1, keepdim=True)
    found = numbers(weights, places)
    for name in VALUES:
        alone = [numbers(weights[:, [n]], places[[n]])[name] for n in range(4)]
        np.testing.assert_allclose(found[name], np.mean(alone, 0), rtol=1e-6)
    both = AttentionStatistics(attention(places), SIZE)
    # 2 x 2 of 6 pixels, in an image of 4 x 4 of them.
    assert both.uniform == approx(6 * (2 + sqrt(2)) / 4)
    assert both.anywhere == approx(AttentionStatistics(attention(ALL[None]), SIZE).uniform)


def test_what_only_fills_a_window_is_left_out() -> None:
    """Of windows of 3 x 3 over 4 x 4, one has 9 positions, two have 3, and one has 1."""
    places = windows_of(3, 6)
    found = numbers(torch.full((1, 4, 1, 9, 9), 1 / 9, dtype=torch.float64), places)
    parts = [places[n][~np.isnan(places[n][:, 0])] for n in range(4)]
    assert [len(part) for part in parts] == [9, 3, 3, 1]
    away = [
        (len(part) / 9) * np.linalg.norm((one - part) * SIZE, axis=1).mean()
        for part in parts
        for one in part
    ]
    anew = [np.linalg.norm((one - part) * SIZE, axis=1).mean() for part in parts for one in part]
    # A mean over queries, and all 16 are one.
    assert found["distance"].item() == approx(np.mean(away))
    assert found["distance_renormalized"].item() == approx(np.mean(anew))
    assert found["entropy"].item() == approx(log(9))
    # The window of one position has none, and the others have 0.
    assert found["nmi"].item() == pytest.approx(0, abs=1e-12)


def test_pooled_keys() -> None:
    found = of_one(torch.eye(4, dtype=torch.float64).repeat_interleave(4, 0), ALL, grid(2, 2))
    by_hand = np.linalg.norm((ALL - grid(2, 2).repeat(4, 0)) * SIZE, axis=1).mean()
    assert found["distance"] == approx(by_hand)
    # Every key has four queries: of their four bits, two are told.
    assert found["nmi"] == pytest.approx(log(4) / sqrt(log(4) * log(16)), abs=1e-6)


def test_attentions_of_the_same_places_share_what_is_computed_of_these() -> None:
    whole, rows = attention(ALL[None]), attention(ALL.reshape(SIDE, SIDE, 2), heads=2)
    assert whole.queries.tobytes() == rows.queries.tobytes()
    first, second, third, fourth = attention_statistics([whole, rows, whole, rows], SIZE)
    assert first is third
    assert second is fourth
    assert first.uniform > second.uniform


# As the golden values call them.
NAMES = {"distance_renormalized": "distance_renormalised"}
ATTENTIONS = {"vit_ti": 12, "pit_ti": 12, "swin_ti": 12, "alternet_50": 6}


@torch.inference_mode()
def measured(
    model: nn.Module, images: torch.Tensor
) -> tuple[list[Attention], dict[str, list[Array]]]:
    """Return the attention of a network, and each number of each head by attention."""
    found = find_attention(model, described(), [])
    assert not found.refused
    computing = attention_statistics(found.attentions, (32, 32))
    numbers: dict[str, list[Array]] = {name: [] for name in VALUES}

    def read(position: int, weights: Weights) -> None:
        means = computing[position].compute(weights).mean(0)
        for name, values in zip(VALUES, means.T, strict=True):
            numbers[name].append(values)

    with attending(model, found.attentions, read):
        model(images)
    return found.attentions, numbers


def test_golden_values_in_single_precision(golden: Golden) -> None:
    attentions, numbers = measured(golden.model("vit_ti"), golden.images(4)[0])
    tokens = [each.queries.shape[1] for each in attentions]
    assert tokens == golden.attention["tokens"]
    for name, values in numbers.items():
        expected = golden.attention[NAMES.get(name, name)]
        np.testing.assert_allclose(values, expected, rtol=1e-5, err_msg=name)


@pytest.mark.nightly
def test_golden_values_in_double_precision(golden: Golden) -> None:
    """And so are those by hand, which other networks are held to."""
    model, images = golden.model("vit_ti").double(), golden.images(4)[0].double()
    _, numbers = measured(model, images)
    by_hand = [each.numbers() for each in seen("vit_ti", model, images)]
    for name, values in numbers.items():
        expected = golden.attention[NAMES.get(name, name)]
        # The images were normalized in single precision.
        np.testing.assert_allclose(values, expected, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose([each[name] for each in by_hand], expected, rtol=1e-6)


@pytest.mark.parametrize("name", some_of(ATTENTIONS, "alternet_50"))
def test_numbers_by_hand(golden: Golden, name: str) -> None:
    model, images = golden.model(name), golden.images(2)[0]
    attentions, numbers = measured(model, images)
    by_hand = seen(name, model, images)
    assert len(attentions) == len(by_hand) == ATTENTIONS[name]
    for number, (attention, expected) in enumerate(zip(attentions, by_hand, strict=True)):
        apart = 32 * attention.queries[:, expected.prefix :] - expected.places
        # The same but for where the first position is.
        assert np.ptp(apart.reshape(-1, 2), axis=0) == pytest.approx(0, abs=1e-4)
        assert np.isnan(attention.queries[:, : expected.prefix]).all()
        for value, of_heads in expected.numbers().items():
            np.testing.assert_allclose(
                numbers[value][number], of_heads, rtol=1e-5, err_msg=f"{value} {attention.name}"
            )
