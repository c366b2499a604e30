"""What a part has of the transforms of its maps: which quantities, of which images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import rounded, written
from tests.measures.fourier.diagonals import log_amplitudes
from vitscope.errors import VitscopeError
from vitscope.measures import slices
from vitscope.measures.fourier.compute import measure_fourier
from vitscope.measures.fourier.measure import FOURIER_PART
from vitscope.measures.fourier.plane import BANDS, HalfDiagonal, LongDiagonal, Plane, WholeSpectrum
from vitscope.measures.given import OnLatents

EDGES = (0.25, 0.5)
MAPS = np.random.default_rng(0).normal(3, 2, (6, 5, 8, 8)).astype(np.float32)
OBLONG = MAPS[:, :, :, :7].copy()
PIXEL = MAPS[:, :, :1, :1].copy()


def test_a_shard_has_every_quantity_of_every_image(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", [MAPS, OBLONG, PIXEL])
    frame = measure_fourier(OnLatents(latents, 30, threads=2), radial=True, edges=EDGES)
    expected = []
    for index, maps in enumerate((MAPS, OBLONG, PIXEL)):
        height, width = maps.shape[2:]
        nothing = np.full((6, 1), np.nan)
        whole = WholeSpectrum(Plane(height, width, EDGES), radial=True)(maps)
        diagonal = LongDiagonal(8, 7) if maps is OBLONG else HalfDiagonal(5, height)
        found = {"diagonal": diagonal(maps).astype(np.float64)}
        for number, band in enumerate(BANDS):
            # A single pixel has no variance.
            found[band] = nothing if maps is PIXEL else whole[:, [number]]
        found["radial"] = whole[:, 3:].astype(np.float32)
        expected += [
            (index, 30 + image, quantity, step, value)
            for quantity, values in found.items()
            for image, steps in enumerate(values)
            for step, value in enumerate(steps)
        ]
    made = pd.DataFrame(expected, columns=list(FOURIER_PART.columns))
    pd.testing.assert_frame_equal(frame, made, check_exact=True)
    FOURIER_PART.write(frame, tmp_path / "part.parquet")
    back = FOURIER_PART.read(tmp_path / "part.parquet")
    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_dtype=False)
    for edges, wanted in ((None, ["diagonal"]), (EDGES, ["diagonal", *BANDS])):
        some = measure_fourier(OnLatents(latents, 30), radial=False, edges=edges)
        of_whole = frame[frame["quantity"].isin(wanted)].reset_index(drop=True)
        pd.testing.assert_frame_equal(some, of_whole, check_exact=True)


def test_slices_and_threads_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latents = written(tmp_path / "file", [MAPS, MAPS[:, :3, :7, :7], OBLONG])
    whole = measure_fourier(OnLatents(latents, 0), True, EDGES)
    for size, threads in ((1, 1), (MAPS[0].nbytes * 2, 2), (MAPS[0].nbytes * 5, 4)):
        monkeypatch.setattr(slices, "SLICE_BYTES", size)
        frame = measure_fourier(OnLatents(latents, 0, threads), True, EDGES)
        pd.testing.assert_frame_equal(frame, whole, check_exact=True)


@pytest.mark.parametrize(("maps", "edges"), [(MAPS, None), (OBLONG, EDGES)])
def test_maps_that_are_not_finite_are_refused(
    tmp_path: Path, maps: np.ndarray, edges: Sequence[float] | None
) -> None:
    spoiled = maps.copy()
    spoiled[2, 4, 7, 6] = np.inf
    latents = written(tmp_path / "file", [spoiled])
    with pytest.raises(VitscopeError, match=r"at map0 is not finite.* for image 102: check"):
        measure_fourier(OnLatents(latents, 100), False, edges)


def test_bfloat16_latents_are_near_those_of_float32(tmp_path: Path) -> None:
    raw, values_of_raw = rounded(MAPS)
    latents = written(tmp_path / "file", [raw], "BF16")
    values = measure_fourier(OnLatents(latents, 0), radial=False, edges=None)["value"]
    np.testing.assert_allclose(values, log_amplitudes(values_of_raw).ravel(), atol=2e-5)
