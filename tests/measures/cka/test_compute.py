"""CKA: against the definition of the HSIC, its formula, and what theory says."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.latents import rounded, written
from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.measures.cka import compute as cka
from vitscope.measures.cka.compute import (
    gram,
    hsic,
    measure_cka,
    measure_cka_between,
    merge_cka,
    merge_cka_between,
    u_centred,
)
from vitscope.measures.cka.measure import CKA_BETWEEN_PART, CKA_TABLE
from vitscope.measures.given import OnLatents, Parts

RANDOM = np.random.default_rng(0)
# Three cut points of 40 images: wide, narrow and of a single pixel; the last two follow the first.
WIDE = RANDOM.normal(3, 2, (40, 5, 4, 3)).astype(np.float32)
NARROW = (WIDE[:, :2, :2, :2] + RANDOM.normal(0, 1, (40, 2, 2, 2))).astype(np.float32)
PIXEL = (WIDE.mean(axis=(2, 3), keepdims=True) ** 2).astype(np.float32)
MAPS = [WIDE, NARROW, PIXEL]


def by_quadruples(first: torch.Tensor, second: torch.Tensor) -> float:
    """The unbiased HSIC by its definition: a mean over all quadruples of different images."""
    quadruples = list(permutations(range(len(first)), 4))
    terms = [
        first[i, j] * (second[i, j] + second[q, r] - 2 * second[i, q]) for i, j, q, r in quadruples
    ]
    return float(sum(terms)) / len(quadruples)


def by_formula(first: torch.Tensor, second: torch.Tensor) -> float:
    """The unbiased HSIC by formula 5 of Song et al. (2012), of two Gram matrices."""
    n = len(first)
    k, l = (matrix.clone().fill_diagonal_(0) for matrix in (first, second))  # noqa: E741
    both = (k.sum() * l.sum()) / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ l).sum()
    return float(((k @ l).trace() + both) / (n * (n - 3)))


def grams_of(maps: Sequence[np.ndarray]) -> list[torch.Tensor]:
    flat = [torch.from_numpy(each).double().flatten(1) for each in maps]
    return [each @ each.T for each in flat]


def cka_by_formula(maps: Sequence[np.ndarray], batch: int) -> np.ndarray:
    """The CKA of all pairs, from means over batches, by the formula."""
    batches = [
        grams_of([each[first : first + batch] for each in maps])
        for first in range(0, len(maps[0]) - batch + 1, batch)
    ]
    means = np.mean([[[by_formula(a, b) for b in grams] for a in grams] for grams in batches], 0)
    return means / np.sqrt(np.outer(means.diagonal(), means.diagonal()))


def shards(folder: Path, maps: Sequence[np.ndarray], size: int) -> Iterator[OnLatents]:
    """Yield what a job is given of each shard of so many images."""
    for first in range(0, len(maps[0]), size):
        some = [each[first : first + size] for each in maps]
        yield OnLatents(written(folder / "latents", some), first)


def measured(folder: Path, maps: Sequence[np.ndarray], batch: int, shard: int) -> pd.DataFrame:
    """Measure in shards of so many images, and merge these."""
    parts = (measure_cka(job, batch) for job in shards(folder, maps, shard))
    return merge_cka(Parts("one", parts, pd.DataFrame()))


def matrix(merged: pd.DataFrame, column: str = "cka") -> np.ndarray:
    return merged.pivot(index="index", columns="other_index", values=column).to_numpy()


@pytest.mark.parametrize(
    ("oracle", "images", "tolerance"), [(by_quadruples, 6, 1e-9), (by_formula, 40, 1e-10)]
)
def test_it_is_what_is_defined(oracle: Any, images: int, tolerance: float) -> None:
    grams = grams_of([each[:images] for each in MAPS])
    expected = [[oracle(one, other) for other in grams] for one in grams]
    np.testing.assert_allclose(hsic(np.stack(grams)), expected, rtol=tolerance)


@given(st.integers(4, 12), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=50)
def test_it_is_never_negative_of_maps_with_themselves(images: int, width: int, seed: int) -> None:
    features = np.random.default_rng(seed).normal(size=(2, images, width)).astype(np.float32)
    values = hsic(np.stack([gram(each) for each in features]))
    assert (values.diagonal() >= 0).all()
    assert abs(values[0, 1]) <= np.sqrt(values[0, 0] * values[1, 1]) * (1 + 1e-12)


def test_u_centred_rows_and_columns_add_up_to_zero() -> None:
    grams = np.stack([gram.numpy() for gram in grams_of(MAPS)])
    centred = u_centred(grams)
    scale = np.abs(grams).max()
    for axis in (-1, -2):
        np.testing.assert_allclose(centred.sum(axis=axis), 0, atol=1e-13 * scale)
    assert not np.diagonal(centred, axis1=-2, axis2=-1).any()


def test_maps_far_from_zero_lose_nothing() -> None:
    # In single precision the Gram matrix of these would keep no digit of how the images differ.
    far = (1e4 + np.round(WIDE * 64) / 64).reshape(40, -1).astype(np.float32)
    exact = far.astype(np.float64) - 1e4
    assert (exact == np.round(exact * 64) / 64).all()
    expected = hsic((exact @ exact.T)[None])
    np.testing.assert_allclose(hsic(gram(far)[None]), expected, rtol=1e-6)


def test_an_odd_first_image_costs_no_digits() -> None:
    features = np.random.default_rng(1).normal(size=(32, 5000)).astype(np.float32)
    features[0] += 1000
    exact = features.astype(np.float64)
    expected = hsic((exact @ exact.T)[None])
    # Beside 1,000, single precision knows the others to 3e-5.
    np.testing.assert_allclose(hsic(gram(features)[None]), expected, rtol=3e-4)


def test_of_fewer_than_four_images_there_is_none() -> None:
    with pytest.raises(VitscopeError, match="4 images or more, not of 3"):
        hsic(np.ones((2, 3, 3)))


def test_slices_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = WIDE.reshape(40, -1)
    whole = gram(flat)
    for size in (1, 7 * 4 * 40, 59 * 4 * 40):
        monkeypatch.setattr(cka, "SLICE_BYTES", size)
        np.testing.assert_allclose(gram(flat), whole, rtol=1e-4, atol=1e-6 * whole.max())
        np.testing.assert_allclose(hsic(gram(flat)[None]), hsic(whole[None]), rtol=1e-6)


def test_a_map_is_like_itself_turned_and_scaled(tmp_path: Path) -> None:
    turn, _ = np.linalg.qr(RANDOM.normal(size=(60, 60)))
    turned = (WIDE.reshape(40, 60) @ turn).reshape(WIDE.shape).astype(np.float32)
    maps = [WIDE, turned, -7 * WIDE + 3, 1e-6 * WIDE]
    values = matrix(measured(tmp_path, maps, 8, 40))
    np.testing.assert_allclose(values, 1, rtol=1e-5)
    assert (values.diagonal() == 1).all()


def test_of_mixed_features_it_is_what_theory_says(tmp_path: Path) -> None:
    mixing = np.random.default_rng(2).normal(size=(6, 3))
    # The HSIC of linear kernels is the squared norm of the covariance.
    own, other = np.eye(6), mixing.T @ mixing
    expected = np.sum(mixing**2) / np.linalg.norm(own) / np.linalg.norm(other)
    plain = np.random.default_rng(3).normal(size=(20_000, 6))
    maps = [each[:, :, None, None].astype(np.float32) for each in (plain, plain @ mixing)]
    merged = measured(tmp_path, maps, 50, 20_000)
    # Over 20 seeds the values scatter by 0.003.
    assert matrix(merged)[0, 1] == pytest.approx(expected, abs=0.012)
    assert matrix(merged, "hsic")[0, 0] == pytest.approx(6, rel=0.03)


def test_rows_of_a_shard_say_which_batch_they_are_of(tmp_path: Path) -> None:
    frame = measure_cka(OnLatents(written(tmp_path / "latents", MAPS), 80), 20)
    assert frame["index"].tolist() == [0, 0, 0, 1, 1, 2] * 2
    assert frame["other_index"].tolist() == [0, 1, 2, 1, 2, 2] * 2
    assert frame["first_image"].tolist() == [80] * 6 + [100] * 6
    assert frame["images"].tolist() == [20] * 12


def test_images_that_fill_no_batch_are_left_out(tmp_path: Path) -> None:
    merged = measured(tmp_path, MAPS, 12, 24)
    whole = measured(tmp_path, [each[:36] for each in MAPS], 12, 36)
    pd.testing.assert_frame_equal(merged, whole, check_exact=True)
    assert set(whole["images"]) == {36}
    shard = written(tmp_path / "latents", [each[:5] for each in MAPS])
    assert measure_cka(OnLatents(shard, 36), 12).empty


def test_maps_that_are_the_same_for_all_images_have_none(tmp_path: Path) -> None:
    # Means of these are not exact in single precision.
    same = np.broadcast_to(RANDOM.normal(0.1, 1, (1, 2, 5, 5)), (40, 2, 5, 5)).astype(np.float32)
    merged = measured(tmp_path, [WIDE, same, NARROW], 10, 20)
    undefined = (merged["index"] == 1) | (merged["other_index"] == 1)
    assert merged["cka"].isna().tolist() == undefined.tolist()
    assert (merged.loc[undefined, "hsic"] == 0).all()
    CKA_TABLE.write(merged, tmp_path / "table")
    assert CKA_TABLE.read(tmp_path / "table")["cka"].isna().sum() == 5
    expected = cka_by_formula([WIDE, NARROW], 10)
    np.testing.assert_allclose(matrix(merged)[::2, ::2], expected, rtol=1e-5)


def test_a_single_image_that_differs_is_no_similarity(tmp_path: Path) -> None:
    one = np.zeros_like(WIDE)
    one[3] = WIDE[3]
    merged = measured(tmp_path, [WIDE, one], 40, 40)
    np.testing.assert_array_equal(np.isnan(matrix(merged)), [[False, True], [True, True]])


def test_bfloat16_latents_are_as_they_are_on_disk(tmp_path: Path) -> None:
    raw, values = zip(*map(rounded, MAPS), strict=True)
    latents = OnLatents(written(tmp_path / "latents", raw, "BF16"), 0)
    merged = merge_cka(Parts("net", iter([measure_cka(latents, 8)]), pd.DataFrame()))
    expected = cka_by_formula(values, 8)
    np.testing.assert_allclose(matrix(merged), expected, rtol=1e-5)


@pytest.mark.parametrize("value", [np.nan, 1e30])
def test_values_that_are_not_finite_are_refused(tmp_path: Path, value: float) -> None:
    spoilt = NARROW.copy()
    spoilt[17, 1, 0, 1] = value
    latents = written(tmp_path / "latents", [WIDE, spoilt])
    with pytest.raises(VitscopeError, match=r"cut point map1 in .*latents have values"):
        measure_cka(OnLatents(latents, 0), 8)


BETWEEN_RANDOM = np.random.default_rng(7)
# Of another network, on images of another size: two cut points that share something with MAPS.
LARGE = (np.repeat(WIDE, 2, axis=3) + BETWEEN_RANDOM.normal(0, 2, (40, 5, 4, 6))).astype(np.float32)
OTHERS = [LARGE, (PIXEL[:, :3] + BETWEEN_RANDOM.normal(0, 1, (40, 3, 1, 1))).astype(np.float32)]


def parts(
    folder: Path, name: str, maps: Sequence[np.ndarray], batch: int, shard: int = 40
) -> Parts:
    """Measure a network in shards of so many images, as jobs do, each by way of its file."""
    tables = []
    for job in shards(folder, maps, shard):
        CKA_BETWEEN_PART.write(measure_cka_between(job, batch), folder / "part.parquet")
        tables.append(CKA_BETWEEN_PART.read(folder / "part.parquet"))
    return Parts(name, iter(tables), pd.DataFrame())


def between(folder: Path, others: Sequence[np.ndarray], batch: int, shard: int) -> pd.DataFrame:
    """Measure and merge two networks; the second in one shard, however the first is cut."""
    one = parts(folder, "one", MAPS, batch, shard)
    return merge_cka_between(one, parts(folder, "two", others, batch))


@pytest.mark.parametrize(("batch", "shard"), [(8, 16), (16, 40)])
def test_it_is_the_mini_batch_cka_of_nguyen(tmp_path: Path, batch: int, shard: int) -> None:
    within, across = np.split(cka_by_formula([*MAPS, *OTHERS], batch)[:3], [3], axis=1)
    of_both = between(tmp_path, OTHERS, batch, shard)
    for merged, expected in ((measured(tmp_path, MAPS, batch, shard), within), (of_both, across)):
        np.testing.assert_allclose(matrix(merged), expected, rtol=1e-5)
        assert set(merged["model"]) == {"one"}
        assert set(merged["batches"]) == {40 // batch}
        assert set(merged["images"]) == {40 // batch * batch}
    assert set(of_both["other_model"]) == {"two"}
    # They have much in common, and little.
    assert across.max() > 0.5 > 0.3 > across.min()


@pytest.mark.parametrize(("batch", "shard"), [(4, 8), (12, 24), (40, 40)])
def test_with_itself_it_is_the_cka_of_one_network_to_the_bit(
    tmp_path: Path, batch: int, shard: int
) -> None:
    alone = measured(tmp_path, MAPS, batch, shard).drop(columns="cka_without")
    merged = between(tmp_path, MAPS, batch, shard)
    chance = [f"{of}{each}" for of in ("", "mutual_") for each in ("null", "p", "calibrated")]
    same = alone.drop(columns=chance)
    pd.testing.assert_frame_equal(merged[[*same]], same, check_exact=True)
    # Between two networks, the images of the second are permuted; within one, those of the deeper.
    deeper = alone["other_index"] >= alone["index"]
    found, expected = (table.loc[deeper, chance] for table in (merged, alone))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("images", "batch", "first"), [(32, 8, 0), (40, 20, 0), (40, 8, 8)], ids=str
)
def test_parts_of_different_images_are_refused(
    tmp_path: Path, images: int, batch: int, first: int
) -> None:
    others = parts(tmp_path, "two", [each[:images] for each in OTHERS], batch)
    moved = (table.assign(first_image=table["first_image"] + first) for table in others.tables)
    ours, theirs = parts(tmp_path, "one", MAPS, 8), replace(others, tables=moved)
    assert refusal(merge_cka_between, ours, theirs) == (
        "The parts of 'one' and 'two' are of different images: delete those of both and run again."
    )


def test_a_part_takes_what_its_table_says(tmp_path: Path) -> None:
    latents = written(tmp_path / "latents", MAPS)
    part = measure_cka_between(OnLatents(latents, 80), batch_size=20)
    assert part["index"].tolist() == [0, 1, 2] * 2
    assert part["first_image"].tolist() == [80] * 3 + [100] * 3
    assert part["images"].tolist() == [20] * 6
    # 4 bytes for each image and each image of a batch, and the diagonal.
    assert {gram.nbytes for gram in part["gram"]} == {4 * 20 * 20 + 4 * 20}


def calibrate(observed: float, null: list[float]) -> tuple[float, float, float]:
    """Return threshold, p and calibrated value by algorithm 1 of Groeger et al. (2026)."""
    both = sorted([observed, *null])
    threshold = both[-(-95 * len(both) // 100) - 1]
    p = (1 + sum(each >= observed for each in null)) / len(both)
    return threshold, p, min(1.0, max(0.0, (observed - threshold) / (1 - threshold)))


def permuted(maps: np.ndarray, size: int, number: int) -> np.ndarray:
    """Return maps with the images of each batch in the order of a permutation."""
    order = []
    for first in range(0, len(maps), size):
        random = np.random.default_rng([0, first])
        orders = [random.permutation(size) for _ in range(number + 1)]
        order += [first + each for each in orders[number]]
    return maps[order]


def test_chance_is_that_of_other_orders_of_the_images(tmp_path: Path) -> None:
    """Each permutation by hand: permuted maps, their Gram matrices, and formula 5."""
    size = 8
    unrelated = np.random.default_rng(7).normal(size=WIDE.shape).astype(np.float32)
    rows = measured(tmp_path, [WIDE, NARROW, unrelated], size, 16)
    rows = rows.set_index(["index", "other_index"])

    def by_hand(one: np.ndarray, other: np.ndarray) -> float:
        def mean(first: np.ndarray, second: np.ndarray) -> float:
            starts = range(0, 40, size)
            pairs = (grams_of([first[at : at + size], second[at : at + size]]) for at in starts)
            return float(np.mean([by_formula(*pair) for pair in pairs]))

        return mean(one, other) / np.sqrt(mean(one, one) * mean(other, other))

    for index, other in ((0, 1), (0, 2)):
        maps = [WIDE, NARROW, unrelated][other]
        null = [by_hand(WIDE, permuted(maps, size, number)) for number in range(200)]
        expected = calibrate(by_hand(WIDE, maps), null)
        for both in ((index, other), (other, index)):
            found = rows.loc[both, ["null", "p", "calibrated"]]
            np.testing.assert_allclose(found.astype(float), expected, rtol=1e-6, atol=1e-6)
    assert rows["p"][0, 1] == 1 / 201
    assert rows["calibrated"][0, 1] > 0.25
    assert rows["p"][0, 2] > 0.05
    assert rows["calibrated"][0, 2] == 0


def test_chance_is_the_same_within_a_network_and_between_two(tmp_path: Path) -> None:
    within = measured(tmp_path, [WIDE, NARROW], 8, 40).set_index(["index", "other_index"])
    parts = [
        Parts(name, iter([measure_cka_between(job, 8)]), pd.DataFrame())
        for name, maps in (("one", WIDE), ("other", NARROW))
        for job in shards(tmp_path, [maps], 40)
    ]
    (between,) = merge_cka_between(*parts).to_dict("records")
    for column in ("cka", "null", "p", "calibrated"):
        assert between[column] == pytest.approx(within.loc[(0, 1), column], rel=1e-6)


def test_a_map_that_is_the_same_for_all_images_has_no_chance(tmp_path: Path) -> None:
    rows = measured(tmp_path, [WIDE, np.ones_like(NARROW)], 8, 40)
    unknown = rows["cka"].isna()
    assert unknown.sum() == 3
    assert (rows.loc[:, ["null", "p", "calibrated"]].isna().all(axis=1) == unknown).all()
