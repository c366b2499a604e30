"""Mutual nearest neighbours: against the search of scikit-learn, and permutations by hand."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import NearestNeighbors

from tests.measures.cka.test_compute import (
    MAPS,
    NARROW,
    OTHERS,
    PIXEL,
    WIDE,
    between,
    calibrate,
    measured,
)
from vitscope.measures.cka import neighbours

COLUMNS = ["mutual_null", "mutual_p", "mutual_calibrated"]


def by_sklearn(one: np.ndarray, other: np.ndarray) -> float:
    """The share that the nearest 10 of both, without the image itself, have in common."""
    near = []
    for maps in (one, other):
        search = NearestNeighbors(n_neighbors=10, metric="cosine").fit(maps.mean(axis=(2, 3)))
        near.append(search.kneighbors(return_distance=False))
    return sum(len({*a} & {*b}) for a, b in zip(*near, strict=True)) / (10 * len(one))


def of_pairs(table: pd.DataFrame) -> pd.DataFrame:
    return table.set_index(["index", "other_index"])


def test_within_a_network_and_between_two_it_is_that_of_sklearn(tmp_path: Path) -> None:
    within, across = measured(tmp_path, MAPS, 8, 16), between(tmp_path, OTHERS, 8, 16)
    for rows, others in ((within, MAPS), (across, OTHERS)):
        assert set(rows["mutual_images"]) == {40}
        for i, j in product(range(len(MAPS)), range(len(others))):
            expected = by_sklearn(MAPS[i], others[j])
            assert of_pairs(rows)["mutual"][i, j] == pytest.approx(expected, abs=1e-12)
    # Not only of chance, which is 10 of 39, and not all.
    assert of_pairs(across)["mutual"][0, 0] > 0.4
    assert of_pairs(within)["mutual"][0, 1] < 0.9


def test_chance_is_that_of_other_orders_of_all_images(tmp_path: Path) -> None:
    unrelated = np.random.default_rng(7).normal(size=WIDE.shape).astype(np.float32)
    maps = [WIDE, PIXEL, unrelated]
    rows = of_pairs(measured(tmp_path, maps, 8, 16))
    random = np.random.default_rng(0)
    orders = [np.argsort(random.permutation(40)) for _ in range(200)]
    for other in (1, 2):
        null = [by_sklearn(WIDE[order], maps[other]) for order in orders]
        assert np.mean(null) == pytest.approx(10 / 39, abs=0.005)
        expected = calibrate(by_sklearn(WIDE, maps[other]), null)
        for both in ((0, other), (other, 0)):
            found = rows.loc[both, COLUMNS].astype(float)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert rows["mutual_p"][0, 1] == 1 / 201
    assert rows["mutual_p"][0, 2] > 0.05
    assert rows["mutual_calibrated"][0, 2] == 0


@pytest.mark.parametrize("shard", [8, 40])
def test_they_are_searched_among_the_first_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int
) -> None:
    monkeypatch.setattr(neighbours, "MOST_IMAGES", 21)
    rows = measured(tmp_path, [WIDE, NARROW], 8, shard)
    assert set(rows["mutual_images"]) == {21}
    assert set(rows["images"]) == {40}
    expected = by_sklearn(WIDE[:21], NARROW[:21])
    assert of_pairs(rows)["mutual"][0, 1] == pytest.approx(expected, abs=1e-12)


def test_without_neighbours_there_is_none(tmp_path: Path) -> None:
    few = measured(tmp_path, [each[:10] for each in MAPS], 10, 10)
    assert few[["mutual", *COLUMNS]].isna().all(axis=None)
    assert few["cka"].notna().all()
    # The means of these are the same for all images, and the maps are not.
    flat = np.stack([WIDE[:, 0], -WIDE[:, 0]], axis=-1).reshape(40, 1, 8, 3)
    rows = measured(tmp_path, [WIDE, flat.astype(np.float32)], 8, 40)
    undefined = (rows["index"] == 1) | (rows["other_index"] == 1)
    assert rows["cka"].notna().all()
    for column in ("mutual", *COLUMNS):
        assert rows[column].isna().tolist() == undefined.tolist()
