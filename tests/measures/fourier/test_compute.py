"""What a part has of the transforms of its maps: which quantities, of which images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import rounded, written
from tests.measures.fourier.diagonals import log_amplitudes
from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.measures import slices
from vitscope.measures.fourier.compute import Transforms, measure, shard_transforms
from vitscope.measures.fourier.diagonal import HalfDiagonal
from vitscope.measures.fourier.plane import BANDS, Plane, WholeSpectrum
from vitscope.measures.fourier.table import PART
from vitscope.measures.given import OnLatents

EDGES = (0.25, 0.5)
MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 8)).astype(np.float32)
SMALL = MAPS[:, :3, :4, :4].copy()
# Not square: these have no diagonal.
OBLONG = MAPS[:, :, :, :7].copy()
PIXEL = MAPS[:, :, :1, :1].copy()


def rows_of(frame: pd.DataFrame, quantities: str | Sequence[str], index: int = 0) -> pd.DataFrame:
    chosen = [quantities] if isinstance(quantities, str) else quantities
    return frame[frame["quantity"].isin(chosen) & (frame["index"] == index)]


def diagonals(latents: TensorFile, first_image: int = 0) -> pd.DataFrame:
    """Return the diagonals of a shard alone: nothing else is measured."""
    return shard_transforms(latents, first_image, radial=False, edges=None)


def named(maps: np.ndarray, radial: bool, edges: Sequence[float] | None) -> dict[str, np.ndarray]:
    transforms = Transforms(maps.shape[1:], radial, edges)
    return dict(transforms.named(transforms(maps)))


def test_of_a_square_map_everything_is_measured() -> None:
    found = named(MAPS, True, EDGES)
    assert list(found) == ["diagonal", *BANDS, "radial"]
    np.testing.assert_array_equal(found["diagonal"], HalfDiagonal(5, 8)(MAPS))
    whole = WholeSpectrum(Plane(8, 8, EDGES), radial=True)(MAPS)
    bands = np.concatenate([found[band] for band in BANDS], axis=1)
    np.testing.assert_array_equal(bands, whole[:, :3])
    np.testing.assert_array_equal(found["radial"], whole[:, 3:].astype(np.float32))


def test_of_a_map_that_is_not_square_the_diagonal_is_undefined() -> None:
    found = named(OBLONG, True, EDGES)
    assert list(found) == ["diagonal", *BANDS, "radial"]
    assert found["diagonal"].shape == (6, 1)
    assert np.isnan(found["diagonal"]).all()
    whole = WholeSpectrum(Plane(8, 7, EDGES), radial=True)(OBLONG)
    bands = np.concatenate([found[band] for band in BANDS], axis=1)
    np.testing.assert_array_equal(bands, whole[:, :3])
    np.testing.assert_array_equal(found["radial"], whole[:, 3:].astype(np.float32))


def test_of_a_single_pixel_the_bands_are_undefined() -> None:
    found = named(PIXEL, True, EDGES)
    assert list(found) == ["diagonal", *BANDS, "radial"]
    expected = np.log(np.abs(PIXEL[..., 0, 0]) + 1e-6).mean(axis=1)[:, None]
    np.testing.assert_allclose(found["diagonal"], expected, atol=1e-6)
    np.testing.assert_allclose(found["radial"], expected, atol=1e-6)
    for band in BANDS:
        assert found[band].shape == (6, 1)
        assert np.isnan(found[band]).all()


@pytest.mark.parametrize("maps", [MAPS, OBLONG, PIXEL])
def test_what_is_not_wanted_is_not_measured(maps: np.ndarray) -> None:
    whole = named(maps, True, EDGES)
    for edges, expected in ((None, ["diagonal"]), (EDGES, ["diagonal", *BANDS])):
        found = named(maps, False, edges)
        assert list(found) == expected
        for quantity, values in found.items():
            np.testing.assert_array_equal(values, whole[quantity])


@pytest.mark.parametrize(("radial", "edges"), [(False, None), (False, EDGES), (True, EDGES)])
def test_slices_and_threads_do_not_matter(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    radial: bool,
    edges: Sequence[float] | None,
) -> None:
    latents = written(tmp_path / "file", [MAPS, MAPS[:, :3, :7, :7], OBLONG, SMALL])
    whole = shard_transforms(latents, 0, radial, edges)
    for size, threads in ((1, 1), (MAPS[0].nbytes * 2, 2), (MAPS[0].nbytes * 5, 4)):
        monkeypatch.setattr(slices, "SLICE_BYTES", size)
        frame = shard_transforms(latents, 0, radial, edges, threads)
        pd.testing.assert_frame_equal(frame, whole, check_exact=True)


def test_rows_of_a_shard_say_what_they_are_of(tmp_path: Path) -> None:
    small = MAPS[:, :2, :4, :4]
    frame = diagonals(written(tmp_path / "file", [MAPS, small]), 30)
    assert set(frame["quantity"]) == {"diagonal"}
    assert frame["index"].tolist() == [0] * 24 + [1] * 12
    assert frame["image"].tolist() == [i for i in range(30, 36) for _ in range(4)] + [
        i for i in range(30, 36) for _ in range(2)
    ]
    assert frame["step"].tolist() == [0, 1, 2, 3] * 6 + [0, 1] * 6
    np.testing.assert_allclose(frame["value"][:24], log_amplitudes(MAPS).ravel(), atol=2e-5)
    np.testing.assert_allclose(frame["value"][24:], log_amplitudes(small).ravel(), atol=2e-5)


def test_rows_of_bands_and_rings_say_what_they_are_of(tmp_path: Path) -> None:
    frame = shard_transforms(written(tmp_path / "file", [OBLONG, SMALL]), 30, True, EDGES)
    images = range(30, 36)
    for index, (maps, rings) in enumerate(((OBLONG, 5), (SMALL, 3))):
        measured = WholeSpectrum(Plane(*maps.shape[2:], EDGES), radial=True)(maps)
        for number, band in enumerate(BANDS):
            rows = rows_of(frame, band, index)
            assert rows["image"].tolist() == [*images]
            assert rows["step"].tolist() == [0] * 6
            np.testing.assert_array_equal(rows["value"], measured[:, number])
        rows = rows_of(frame, "radial", index)
        assert rows["image"].tolist() == [image for image in images for _ in range(rings)]
        assert rows["step"].tolist() == [*range(rings)] * 6
        np.testing.assert_array_equal(rows["value"], measured[:, 3:].ravel().astype(np.float32))


def test_without_the_radial_profile_the_bands_are_the_same(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [OBLONG, SMALL])
    frame, whole = (shard_transforms(latents, 0, radial, EDGES) for radial in (False, True))
    assert set(frame["quantity"]) == {"diagonal", *BANDS}
    others = whole[whole["quantity"] != "radial"].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame, others, check_exact=True)


def test_a_map_that_is_not_square_has_no_diagonal(tmp_path: Path) -> None:
    frame = diagonals(written(tmp_path / "file", [MAPS[:, :, :4], MAPS]))
    none = rows_of(frame, "diagonal", 0)
    assert none["step"].tolist() == [0] * 6
    assert none["value"].isna().all()
    assert rows_of(frame, "diagonal", 1)["value"].notna().all()


def test_single_pixels_have_no_variance(tmp_path: Path) -> None:
    frame = shard_transforms(written(tmp_path / "file", [PIXEL, SMALL]), 0, True, EDGES)
    assert rows_of(frame, BANDS, 0)["value"].isna().all()
    assert rows_of(frame, BANDS, 1)["value"].notna().all()
    expected = np.log(np.abs(PIXEL[:, :, 0, 0]) + 1e-6).mean(axis=1)
    np.testing.assert_allclose(rows_of(frame, "radial", 0)["value"], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("whole", "radial", "edges"),
    [(MAPS, False, None), (MAPS, True, EDGES), (OBLONG, False, EDGES), (OBLONG, True, EDGES)],
)
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_maps_that_are_not_finite_are_refused(
    tmp_path: Path,
    whole: np.ndarray,
    wrong: float,
    radial: bool,
    edges: Sequence[float] | None,
) -> None:
    maps = whole.copy()
    maps[2, 4, 7, 6] = wrong
    latents = written(tmp_path / "file", [maps])
    with pytest.raises(VitscopeError, match=r"at map0 is not finite.* for image 102: check"):
        shard_transforms(latents, 100, radial, edges)


def test_bfloat16_latents_are_near_those_of_float32(tmp_path: Path) -> None:
    raw, values_of_raw = rounded(MAPS)
    values = diagonals(written(tmp_path / "file", [raw], "BF16"))["value"]
    np.testing.assert_allclose(values, log_amplitudes(values_of_raw).ravel(), atol=2e-5)


def test_a_job_measures_its_shard(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS, OBLONG])
    frame = measure(OnLatents(latents, 30, threads=2), radial=True, edges=EDGES)
    expected = shard_transforms(latents, 30, True, EDGES)
    pd.testing.assert_frame_equal(frame, expected, check_exact=True)
    PART.write(frame, tmp_path / "part.parquet")
    back = PART.read(tmp_path / "part.parquet")
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_dtype=False)
