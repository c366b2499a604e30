"""CKA between two networks: against the formula, theory, and the CKA of one network."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import GoldenLatents, rounded, written
from tests.measures.cka.test_compute import MAPS, NARROW, PIXEL, WIDE, cka_by_formula, gaussian
from vitscope.errors import VitscopeError
from vitscope.measures.cka import compute as cka
from vitscope.measures.cka.compute_cka_between import measure
from vitscope.measures.cka.merge import mean_cka
from vitscope.measures.cka.merge_cka_between import merge
from vitscope.measures.cka.table_cka_between import PART, TABLE
from vitscope.measures.given import OnLatents, Parts

RANDOM = np.random.default_rng(7)
# Of another network, on images of another size: two cut points that share something with MAPS.
LARGE = (np.repeat(WIDE, 2, axis=3) + RANDOM.normal(0, 2, (40, 5, 4, 6))).astype(np.float32)
OTHERS = [LARGE, (PIXEL[:, :3] + RANDOM.normal(0, 1, (40, 3, 1, 1))).astype(np.float32)]


def parts(
    folder: Path, name: str, maps: Sequence[np.ndarray], batch: int, shard: int = 40
) -> Parts:
    """Measure a network in shards of so many images, as jobs do, each by way of its file."""
    paths = []
    for first in range(0, len(maps[0]), shard):
        latents = written(folder / "latents", [each[first : first + shard] for each in maps])
        paths.append(folder / f"{name}{first}.parquet")
        PART.write(measure(OnLatents(latents, first), batch_size=batch), paths[-1])
    return Parts(name, map(PART.read, paths), pd.DataFrame())


def between(
    folder: Path,
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    batch: int = 8,
    shard: int = 40,
) -> pd.DataFrame:
    """Measure and merge two networks; the second in one shard, however the first is cut."""
    one = parts(folder, "one", first, batch, shard)
    merged = merge(one, parts(folder, "two", second, batch, len(second[0])))
    TABLE.write(merged, folder / "table.parquet")
    return merged


def matrix(merged: pd.DataFrame, column: str = "cka") -> np.ndarray:
    return merged.pivot(index="index", columns="other_index", values=column).to_numpy()


@pytest.mark.parametrize("batch", [8, 16, 40])
def test_it_is_the_mini_batch_cka_of_nguyen(tmp_path: Path, batch: int) -> None:
    merged = between(tmp_path, MAPS, OTHERS, batch)
    expected = cka_by_formula([*MAPS, *OTHERS], batch)[:3, 3:]
    np.testing.assert_allclose(matrix(merged), expected, rtol=1e-5)
    # They have much in common, and little.
    assert expected.max() > 0.5 > 0.3 > expected.min()
    assert set(merged["model"]) == {"one"}
    assert set(merged["other_model"]) == {"two"}
    assert set(merged["batches"]) == {40 // batch}
    assert set(merged["images"]) == {40 // batch * batch}


def test_a_map_is_like_the_same_turned_and_scaled(tmp_path: Path) -> None:
    turn, _ = np.linalg.qr(RANDOM.normal(size=(60, 60)))
    turned = (WIDE.reshape(40, 60) @ turn).reshape(40, 60, 1, 1).astype(np.float32)
    values = matrix(between(tmp_path, [WIDE], [turned, -7 * WIDE + 3, 1e-6 * WIDE]))
    np.testing.assert_allclose(values, 1, rtol=1e-5)


def test_of_mixed_features_it_is_what_theory_says(tmp_path: Path) -> None:
    mixing = np.random.default_rng(2).normal(size=(6, 3))
    # The HSIC of linear kernels is the squared norm of the covariance.
    own, other = np.eye(6), mixing.T @ mixing
    expected = np.sum(mixing**2) / np.linalg.norm(own) / np.linalg.norm(other)
    plain, mixed = gaussian(20_000, mixing)
    merged = between(tmp_path, [plain], [mixed], 50, 20_000)
    # Over 20 seeds the values scatter by 0.003.
    assert matrix(merged)[0, 0] == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize(("batch", "shard"), [(4, 40), (4, 8), (5, 10), (20, 20), (40, 40)])
def test_with_itself_it_is_the_cka_of_one_network_to_the_bit(
    tmp_path: Path, batch: int, shard: int
) -> None:
    shards = [
        cka.shard_hsic(
            written(tmp_path / "latents", [each[first : first + shard] for each in MAPS]),
            first,
            batch,
        )
        for first in range(0, 40, shard)
    ]
    alone = mean_cka("one", shards)
    merged = between(tmp_path, MAPS, MAPS, batch, shard)
    columns = list(alone.columns)
    pd.testing.assert_frame_equal(merged[columns], alone, check_exact=True)


def test_of_real_networks_too(golden_latents: GoldenLatents) -> None:
    def measured(name: str) -> Parts:
        tables = [measure(OnLatents(file, first), 4) for first, file in golden_latents.shards]
        return Parts(name, iter(tables), pd.DataFrame())

    shards = [cka.shard_hsic(file, first, 4) for first, file in golden_latents.shards]
    alone = mean_cka("net", shards)
    merged = merge(measured("net"), measured("same"))
    pd.testing.assert_frame_equal(merged[list(alone.columns)], alone, check_exact=True)


def test_which_network_is_the_first_does_not_matter(tmp_path: Path) -> None:
    for column in ("cka", "hsic"):
        np.testing.assert_array_equal(
            matrix(between(tmp_path, MAPS, OTHERS), column),
            matrix(between(tmp_path, OTHERS, MAPS), column).T,
        )


@pytest.mark.parametrize("shard", [8, 16, 24])
def test_any_sharding_gives_the_same(tmp_path: Path, shard: int) -> None:
    whole = between(tmp_path, MAPS, OTHERS)
    pd.testing.assert_frame_equal(
        between(tmp_path, MAPS, OTHERS, shard=shard), whole, check_exact=True
    )


def test_the_last_images_are_left_out_of_both(tmp_path: Path) -> None:
    merged = between(tmp_path, MAPS, OTHERS, 12)
    few = between(tmp_path, [each[:36] for each in MAPS], [each[:36] for each in OTHERS], 12)
    pd.testing.assert_frame_equal(merged, few, check_exact=True)


def test_a_map_that_is_the_same_for_all_images_has_none(tmp_path: Path) -> None:
    same = np.broadcast_to(RANDOM.normal(0.1, 1, (1, 2, 5, 5)), (40, 2, 5, 5)).astype(np.float32)
    values = matrix(between(tmp_path, [WIDE, NARROW], [same, PIXEL]))
    np.testing.assert_array_equal(np.isnan(values), [[True, False], [True, False]])
    TABLE.read(tmp_path / "table.parquet")


def test_bfloat16_latents_are_as_they_are_on_disk(tmp_path: Path) -> None:
    raw, values = zip(*map(rounded, OTHERS), strict=True)
    latents = written(tmp_path / "latents", raw, "BF16")
    others = Parts("two", iter([measure(OnLatents(latents, 0), 8)]), pd.DataFrame())
    merged = merge(parts(tmp_path, "one", MAPS, 8), others)
    expected = cka_by_formula([*MAPS, *values], 8)[:3, 3:]
    np.testing.assert_allclose(matrix(merged), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("images", "batch", "first"), [(32, 8, 0), (40, 20, 0), (40, 8, 8)], ids=str
)
def test_parts_of_different_images_are_refused(
    tmp_path: Path, images: int, batch: int, first: int
) -> None:
    others = parts(tmp_path, "two", [each[:images] for each in OTHERS], batch)
    moved = (table.assign(first_image=table["first_image"] + first) for table in others.tables)
    with pytest.raises(VitscopeError) as caught:
        merge(parts(tmp_path, "one", MAPS, 8), replace(others, tables=moved))
    assert str(caught.value) == (
        "The parts of 'one' and 'two' are of different images: delete those of both and run again."
    )


def test_a_part_takes_what_its_table_says(tmp_path: Path) -> None:
    latents = written(tmp_path / "latents", MAPS)
    part = measure(OnLatents(latents, 80), batch_size=20)
    assert part["index"].tolist() == [0, 1, 2] * 2
    assert part["first_image"].tolist() == [80] * 3 + [100] * 3
    assert part["images"].tolist() == [20] * 6
    # 4 bytes for each image and each image of a batch, and the diagonal.
    assert {gram.nbytes for gram in part["gram"]} == {4 * 20 * 20 + 4 * 20}


def test_values_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    spoilt = NARROW.copy()
    spoilt[17, 1, 0, 1] = np.nan
    latents = written(tmp_path / "latents", [WIDE, spoilt])
    with pytest.raises(VitscopeError, match=r"cut point map1 in .*latents have values"):
        measure(OnLatents(latents, 0), batch_size=8)
