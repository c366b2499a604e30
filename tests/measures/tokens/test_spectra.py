"""Singular values: against a decomposition in float64, and closed forms."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import written
from vitscope.measures.bootstrap import bootstrap_image_means
from vitscope.measures.given import OnLatents, Parts
from vitscope.measures.tokens.measure import FLOOR
from vitscope.measures.tokens.spectra import (
    choose_positions,
    effective_rank,
    log_ratios,
    measure_singular_values,
    merge_singular_values,
    singular_values,
)
from vitscope.networks.finding.cut_points import CUT_POINT

RNG = np.random.default_rng(0)
# More tokens than channels, and fewer.
WIDE = RNG.normal(1, 2, (6, 5, 4, 3)).astype(np.float32)
NARROW = RNG.normal(-1, 1, (6, 14, 3, 3)).astype(np.float32)
SETTINGS = {"tokens": 256, "seed": 0}


def decomposed(vectors: np.ndarray) -> np.ndarray:
    """The singular values about the mean, by numpy's decomposition; the last may be one of zero."""
    values = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False)
    return values[: min(len(vectors) - 1, vectors.shape[1])]


def tokens_of(maps: np.ndarray) -> list[np.ndarray]:
    return [each.reshape(len(each), -1).T.astype(np.float64) for each in maps]


def made_of(values: list[float], vectors: int, offset: float = 3.0) -> np.ndarray:
    """Vectors with these singular values about their mean, which is no zero."""
    left, _ = np.linalg.qr(np.column_stack([np.ones(vectors), RNG.normal(size=(vectors, 6))]))
    right, _ = np.linalg.qr(RNG.normal(size=(8, len(values))))
    # The first column of `left` is constant: all others have no mean.
    return left[:, 1 : 1 + len(values)] * values @ right.T + offset


@pytest.mark.parametrize("maps", [WIDE, NARROW, WIDE + 100])
def test_they_are_those_of_a_decomposition(maps: np.ndarray) -> None:
    tokens = tokens_of(maps)
    found = singular_values(np.stack(tokens))
    for values, each in zip(found, tokens, strict=True):
        np.testing.assert_allclose(values, decomposed(each), rtol=1e-10)


def test_small_ones_are_exact_to_the_floor() -> None:
    given = np.array([1.0, 1e-2, 1e-4, 1e-5, 3e-6])
    found = singular_values(made_of(given.tolist(), 40))[:5]
    # Of what is squared, eight digits below the first are left.
    np.testing.assert_allclose(found, given, atol=2e-8, rtol=1e-9)
    assert log_ratios(singular_values(made_of([1.0, 1e-9], 40)))[1:].tolist() == [np.log(FLOOR)] * 7


def test_closed_forms() -> None:
    alone = singular_values(made_of([5.0], 20))
    assert effective_rank(alone) == pytest.approx(1, abs=1e-5)
    assert log_ratios(alone)[0] == 0
    assert log_ratios(alone)[1:].tolist() == [np.log(FLOOR)] * 7
    # Ends of all axes, both ways: as many directions as channels, all alike.
    axes = singular_values(np.concatenate([np.eye(6), -np.eye(6)]))
    np.testing.assert_allclose(axes, np.sqrt(2), rtol=1e-14)
    assert effective_rank(axes) == pytest.approx(6, rel=1e-14)
    # Half of the sum is the first, a quarter the second, an eighth the others: 1.75 bits.
    halves = singular_values(made_of([4.0, 2.0, 1.0, 1.0], 20))
    assert effective_rank(halves) == pytest.approx(2**1.75, abs=1e-5)
    expected = np.log([1, 1 / 2, 1 / 4, 1 / 4])
    np.testing.assert_allclose(log_ratios(halves)[:4], expected, atol=1e-10)


LAYERS = [WIDE, NARROW, WIDE[:, :, :1, :1].copy(), NARROW * 0 + np.float32(0.1)]
POINTS = pd.DataFrame(
    {"index": range(4), **{c: 0 for c in CUT_POINT if c != "index"}, "name": "a", "kind": "mlp"}
).assign(model="m")


def merged(folder: Path, layers: list[np.ndarray]) -> pd.DataFrame:
    part = measure_singular_values(OnLatents(written(folder / "file", layers), 0), **SETTINGS)
    parts = Parts("m", iter([part]), POINTS[: len(layers)])
    return merge_singular_values(parts, resamples=100, seed=0)


def test_both_spectra_are_those_of_a_decomposition(tmp_path: Path) -> None:
    rows = merged(tmp_path, LAYERS).set_index(["index", "of"])
    for index, maps in enumerate((WIDE, NARROW)):
        values = [decomposed(each) for each in tokens_of(maps)]
        of_tokens = rows.loc[index, "tokens"]
        logs = np.mean([np.log(each / each[0]) for each in values], axis=0)
        np.testing.assert_allclose(of_tokens["log_ratios"], logs, rtol=1e-10)
        share = [each / each.sum() for each in values]
        ranks = [np.exp(-(each * np.log(each)).sum()) for each in share]
        assert of_tokens["effective_rank"] == pytest.approx(np.mean(ranks), rel=1e-10)
        assert of_tokens["ci_low"] < np.mean(ranks) < of_tokens["ci_high"]
        # They are kept in float32.
        resampled = bootstrap_image_means(np.array(ranks)[:, None], 100, 0)[:, 0]
        np.testing.assert_allclose(of_tokens["effective_rank_resampled"], resampled, rtol=1e-6)
        assert of_tokens["vectors"] == maps[0, 0].size
        assert of_tokens["most"] == len(logs)
        pooled = decomposed(maps.astype(np.float64).mean(axis=(2, 3)))
        of_images = rows.loc[index, "images"]
        np.testing.assert_allclose(of_images["log_ratios"], np.log(pooled / pooled[0]), rtol=1e-9)
        assert of_images["vectors"] - 1 == of_images["most"] == len(pooled) == 5


def test_maps_and_images_without_a_spectrum(tmp_path: Path) -> None:
    single = merged(tmp_path, [WIDE[:1]]).set_index("of")
    assert np.isnan(single["effective_rank"]["images"])
    assert single["log_ratios"]["images"] == []
    assert np.isnan(single["ci_low"]["tokens"])
    rows = merged(tmp_path, LAYERS).set_index(["index", "of"])
    one = rows.loc[2, "tokens"]
    assert (one["most"], one["log_ratios"]) == (0, [])
    assert np.isnan(one["effective_rank"])
    # Its images differ all the same.
    assert rows.loc[2, "images"]["effective_rank"] > 1
    for of in ("tokens", "images"):
        alike = rows.loc[3, of]
        assert (alike["effective_rank"], alike["log_ratios"]) == (0, [])


def test_of_large_maps_some_tokens_are_drawn(tmp_path: Path) -> None:
    assert choose_positions(100, 10, 20, 0).tolist() == list(range(100))
    assert choose_positions(10, 100, 20, 0).tolist() == list(range(10))
    chosen = choose_positions(100, 30, 20, 0)
    assert len(set(chosen)) == 20
    assert chosen.tolist() == sorted(chosen)
    assert (
        chosen.tolist()
        == choose_positions(100, 60, 20, 0).tolist()
        != choose_positions(100, 30, 20, 1).tolist()
    )
    part = measure_singular_values(
        OnLatents(written(tmp_path / "file", [NARROW]), 0), tokens=4, seed=0
    )
    assert part["tokens"].tolist() == [4] * 6
    which = choose_positions(9, 14, 4, 0)
    for each, ratios in zip(tokens_of(NARROW), part["log_ratios"], strict=True):
        values = decomposed(each[which])
        np.testing.assert_allclose(ratios, np.log(values / values[0]), rtol=1e-9, atol=1e-12)
    # Whole images are pooled.
    pooled = NARROW.astype(np.float64).mean(axis=(2, 3))
    np.testing.assert_allclose(np.stack(part["pooled"].to_list()), pooled, rtol=1e-12)
