"""CKA between two networks: against the formula, theory, and the CKA of one network."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import written
from tests.measures.cka.test_compute import MAPS, PIXEL, WIDE, cka_by_formula, measured
from vitscope.errors import VitscopeError
from vitscope.measures.cka.compute import measure_cka_between, merge_cka_between
from vitscope.measures.cka.measure import CKA_BETWEEN_PART, CKA_BETWEEN_TABLE
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
        CKA_BETWEEN_PART.write(
            measure_cka_between(OnLatents(latents, first), batch_size=batch), paths[-1]
        )
    return Parts(name, map(CKA_BETWEEN_PART.read, paths), pd.DataFrame())


def between(
    folder: Path,
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    batch: int = 8,
    shard: int = 40,
) -> pd.DataFrame:
    """Measure and merge two networks; the second in one shard, however the first is cut."""
    one = parts(folder, "one", first, batch, shard)
    merged = merge_cka_between(one, parts(folder, "two", second, batch, len(second[0])))
    CKA_BETWEEN_TABLE.write(merged, folder / "table.parquet")
    return merged


def matrix(merged: pd.DataFrame, column: str = "cka") -> np.ndarray:
    return merged.pivot(index="index", columns="other_index", values=column).to_numpy()


@pytest.mark.parametrize(("batch", "shard"), [(8, 16), (16, 40)])
def test_it_is_the_mini_batch_cka_of_nguyen(tmp_path: Path, batch: int, shard: int) -> None:
    merged = between(tmp_path, MAPS, OTHERS, batch, shard)
    expected = cka_by_formula([*MAPS, *OTHERS], batch)[:3, 3:]
    np.testing.assert_allclose(matrix(merged), expected, rtol=1e-5)
    # They have much in common, and little.
    assert expected.max() > 0.5 > 0.3 > expected.min()
    assert set(merged["model"]) == {"one"}
    assert set(merged["other_model"]) == {"two"}
    assert set(merged["batches"]) == {40 // batch}
    assert set(merged["images"]) == {40 // batch * batch}


@pytest.mark.parametrize(("batch", "shard"), [(4, 8), (12, 24), (40, 40)])
def test_with_itself_it_is_the_cka_of_one_network_to_the_bit(
    tmp_path: Path, batch: int, shard: int
) -> None:
    alone = measured(tmp_path, MAPS, batch, shard).drop(columns="cka_without")
    merged = between(tmp_path, MAPS, MAPS, batch, shard)
    pd.testing.assert_frame_equal(merged[[*alone]], alone, check_exact=True)


@pytest.mark.parametrize(
    ("images", "batch", "first"), [(32, 8, 0), (40, 20, 0), (40, 8, 8)], ids=str
)
def test_parts_of_different_images_are_refused(
    tmp_path: Path, images: int, batch: int, first: int
) -> None:
    others = parts(tmp_path, "two", [each[:images] for each in OTHERS], batch)
    moved = (table.assign(first_image=table["first_image"] + first) for table in others.tables)
    with pytest.raises(VitscopeError) as caught:
        merge_cka_between(parts(tmp_path, "one", MAPS, 8), replace(others, tables=moved))
    assert str(caught.value) == (
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
