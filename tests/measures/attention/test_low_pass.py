"""What heads let through: closed forms, NumPy in double precision, and passes by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.helpers.attending import found_in, sharpened
from tests.helpers.kinds import build
from tests.helpers.networks import described, mini, mini_blocks
from tests.helpers.splits import on_model, shapes
from tests.helpers.tiers import some_of
from tests.networks.attention.test_reading import IMAGES, SIZE, TOKENS, Tokens, Windows, by_hand
from vitscope.measures.attention.compute import compute_low_pass_by_head, measure_attention_low_pass
from vitscope.networks.attention.reading import Use, reading_attention_use
from vitscope.networks.finding.blocks import list_blocks

Array = np.ndarray
GENERATOR = torch.Generator().manual_seed(0)
CHOSEN, BOOTSTRAP = {"shown": 3, "images": 10, "seed": 0}, {"resamples": 50, "seed": 0}


def centred(tokens: Array) -> Array:
    count = len(tokens)
    high: Array = (np.eye(count) - np.full((count, count), 1 / count)) @ tokens
    return high


def expected(weights: Array, values: Array, output: Array) -> tuple[float, float]:
    """The bound and what passed, of one head in one window."""
    passed = np.linalg.norm(centred(output)) / np.linalg.norm(centred(values))
    return float(np.linalg.norm(centred(weights), 2)), float(passed)


def of_one(weights: Tensor, values: Tensor) -> list[float]:
    shaped = (each[None, None, None] for each in (weights, values, weights @ values))
    found: list[float] = compute_low_pass_by_head(*shaped)[0, 0].tolist()
    return found


def test_closed_forms() -> None:
    values = 3 + torch.randn(6, 4, generator=GENERATOR)
    assert of_one(torch.full((6, 6), 1 / 6), values) == pytest.approx([0, 0, 1], abs=1e-6)
    assert of_one(torch.eye(6), values) == pytest.approx([1, 1, 0], abs=1e-4)
    # Half of the attention to itself, half to all alike.
    both = (torch.eye(6) + 1 / 6) / 2
    assert of_one(both, values) == pytest.approx([1 / 2, 1 / 2, 0], abs=1e-4)
    # Two queries each at one of two keys: the values differ by d, their mean has d / sqrt(2).
    pair = torch.eye(2).repeat_interleave(2, 0)
    assert of_one(pair, values[:2]) == pytest.approx([2**0.5, 2**0.5, 0], abs=1e-4)
    # Of values that are alike nothing is to pass.
    bound, passed, room = of_one(torch.eye(6), torch.ones(6, 4))
    assert (bound, np.isnan(passed), room) == (pytest.approx(1), True, 1)
    assert of_one(torch.eye(6), torch.zeros(6, 4))[2] == 1


@pytest.mark.parametrize("scale", [0.01, 1, 30])
@pytest.mark.parametrize("keys", [9, 4])
def test_random_attention_is_as_numpy_has_it(scale: float, keys: int) -> None:
    logits = scale * torch.randn(9, keys, generator=GENERATOR, dtype=torch.float64)
    weights, values = logits.softmax(-1), 5 + torch.randn(keys, 3, generator=GENERATOR).double()
    *found, room = of_one(weights, values)
    by_numpy = expected(*(each.numpy() for each in (weights, values, weights @ values)))
    assert found == pytest.approx(by_numpy, rel=1e-9)
    assert 0 < room <= 1
    # The rate of Wang et al. 2022, of as many keys as queries.
    largest = np.exp(2 * float(logits.abs().max()))
    assert keys < 9 or found[0] <= np.sqrt(9 * largest / (largest + 8)) * (1 + 1e-12)
    # No values pass more than those along the first singular vector, which pass as much.
    along = torch.linalg.svd(weights - weights.mean(0)).Vh[:1].T
    assert of_one(weights, along)[1] == pytest.approx(found[0], rel=1e-9)


def test_of_windows_the_largest_bound_and_all_norms() -> None:
    weights = torch.stack([torch.eye(4), torch.full((4, 4), 0.25)])[None, :, None]
    values = torch.randn(1, 2, 1, 4, 3, generator=GENERATOR)
    bound, passed, room = compute_low_pass_by_head(weights, values, weights @ values)[0, 0].tolist()
    norms = [np.linalg.norm(centred(each.numpy())) for each in values[0, :, 0]]
    assert (bound, passed) == pytest.approx((1, norms[0] / np.hypot(*norms)), abs=1e-5)
    assert room == pytest.approx(0, abs=1e-4)


ROWS = torch.randn(8, 8, generator=torch.Generator().manual_seed(0)).double().softmax(-1)
VALUES_OF = 100 + torch.randn(8, 4, generator=torch.Generator().manual_seed(1)).double()
UNEVEN = ROWS * torch.linspace(0.5, 1, 8).double()[:, None]


@pytest.mark.parametrize(
    ("weights", "values", "used", "kept"),
    [
        pytest.param(ROWS, VALUES_OF, ROWS, True, id="as it is"),
        # Rows that do not sum to one let the mean of the values pass for something else.
        pytest.param(UNEVEN, VALUES_OF, UNEVEN, False, id="uneven rows"),
        # The output is that of values ten times as large as those that are shown.
        pytest.param(ROWS, VALUES_OF / 10, ROWS, False, id="wrong values"),
        pytest.param(torch.full_like(ROWS, 1 / 8), VALUES_OF, ROWS, False, id="wrong weights"),
    ],
)
def test_the_bound_is_kept_by_what_is_attention_and_by_nothing_else(
    weights: Tensor, values: Tensor, used: Tensor, kept: bool
) -> None:
    shaped = (each[None, None, None] for each in (weights, values, used @ VALUES_OF))
    assert (float(compute_low_pass_by_head(*shaped)[0, 0, 2]) > 0) == kept


@pytest.mark.parametrize("backend", [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])
def test_a_pass_by_hand(backend: SDPBackend) -> None:
    model, seen = Tokens(prefix=1), list[Use]()
    with (
        torch.no_grad(),
        sdpa_kernel(backend),
        reading_attention_use(model, found_in(model, SIZE).attentions, seen.append),
    ):
        model(IMAGES)
    (use,) = seen
    found = compute_low_pass_by_head(*use.by_head())
    weights = by_hand(model, IMAGES).numpy()
    values = model.split(model.tokens(IMAGES))[2].detach().double().numpy()
    assert weights.shape[-1] == TOKENS + 1
    for image, head in np.ndindex(found.shape[:2]):
        of_head = weights[image, head], values[image, head]
        by_numpy = expected(*of_head, of_head[0] @ of_head[1])
        assert found[image, head, :2].tolist() == pytest.approx(by_numpy, rel=1e-5)
    assert (found[..., 2] > 0).all()


def test_windows_of_a_pass_have_their_own_values() -> None:
    for windows_first in (False, True):
        model, seen = Windows(windows_first), list[Use]()
        with (
            torch.no_grad(),
            reading_attention_use(model, found_in(model, SIZE).attentions, seen.append),
        ):
            model(IMAGES)
        weights, values, output = seen[0].by_head()
        assert weights.shape == (3, 4, 2, 4, 4)
        torch.testing.assert_close(weights @ values, output, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", some_of(["vit", "swin", "alternet"], "alternet"))
def test_a_model_of_mini_is_measured(name: str, tmp_path: Path) -> None:
    split, (model, points) = shapes(tmp_path / "split", 20), mini(name)
    given = on_model(sharpened(model), split, cut_points=points, blocks=mini_blocks(name).table)
    table = measure_attention_low_pass(given, CHOSEN, BOOTSTRAP)
    heads, means = table[table["head"].notna()], table[table["head"].isna()]
    assert (table["images"] == 3).all()
    assert (heads["room"] > 0).all()
    assert (heads["let_through"] < heads["bound"]).all()
    of_heads = heads.groupby("attention")
    for column in ("bound", "let_through"):
        assert means[column].tolist() == pytest.approx(of_heads[column].mean().tolist())
        assert (table[f"{column}_low"] <= table[column]).all()
    assert means["room"].tolist() == of_heads["room"].min().tolist()
    # So few resamples are all kept, in float32: the interval is theirs.
    ends = np.percentile(heads["let_through_resampled"].to_list(), [2.5, 97.5], axis=1)
    np.testing.assert_allclose(ends.T, heads[["let_through_low", "let_through_high"]], rtol=1e-6)
    assert means["let_through_resampled"].isna().all()
    # What computes in fewer bits rounds more than is allowed for.
    given.network.bfloat16()
    assert measure_attention_low_pass(given, CHOSEN, BOOTSTRAP)["room"].isna().all()


def test_mixed_heads_and_attention_of_one_query_have_no_values(tmp_path: Path) -> None:
    model, split = build("cait"), shapes(tmp_path / "split", 20)
    found = list_blocks("net", model, described())
    given = on_model(model, split, cut_points=found.points, blocks=found.table)
    table = measure_attention_low_pass(given, CHOSEN, BOOTSTRAP)
    assert len(table) == 4 * 3
    assert table[["bound", "let_through", "room"]].isna().all(axis=None)
