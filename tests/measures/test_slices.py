from pathlib import Path

import numpy as np
import pytest

from tests.helpers.latents import written
from vitscope.errors import VitscopeError
from vitscope.measures import slices
from vitscope.measures.given import OnLatents
from vitscope.measures.slices import measure_slices

RNG = np.random.default_rng(0)
MAPS = {
    "stem": RNG.normal(size=(7, 5, 6, 6)).astype(np.float32),
    "block": RNG.normal(size=(7, 3, 4, 4)).astype(np.float32),
}


def first_pixels(maps: np.ndarray) -> np.ndarray:
    return maps[:, :, 0, 0].copy()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("images", [0.5, 1, 2, 100])
def test_every_image_is_measured_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, images: float
) -> None:
    monkeypatch.setattr(slices, "SLICE_BYTES", int(images * MAPS["stem"][0].nbytes))
    latents = written(tmp_path / "file", MAPS)
    values = measure_slices(OnLatents(latents, 0, threads), dict.fromkeys(MAPS, first_pixels))
    assert list(values) == list(MAPS)
    for name, maps in MAPS.items():
        np.testing.assert_array_equal(values[name], first_pixels(maps))


def test_only_what_has_a_measure_is_read(tmp_path: Path) -> None:
    latents = written(tmp_path / "file", MAPS)
    assert list(measure_slices(OnLatents(latents, 0), {"block": first_pixels})) == ["block"]
    assert measure_slices(OnLatents(latents, 0), {}) == {}


def test_a_measure_gets_float32_of_bfloat16(tmp_path: Path) -> None:
    upper_half = (MAPS["stem"].view(np.uint32) >> 16).astype(np.uint16)
    latents = written(tmp_path / "file", {"stem": upper_half}, "BF16")
    (values,) = measure_slices(OnLatents(latents, 0), {"stem": first_pixels}).values()
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, first_pixels(MAPS["stem"]), rtol=2**-7)


@pytest.mark.parametrize("wrong", [np.nan, -np.inf])
def test_what_is_not_finite_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: float
) -> None:
    maps = {name: values.copy() for name, values in MAPS.items()}
    maps["block"][5, 1, 0, 0] = wrong
    monkeypatch.setattr(slices, "SLICE_BYTES", 2 * maps["block"][0].nbytes)
    latents = written(tmp_path / "file", maps)
    with pytest.raises(VitscopeError, match=r"file: the feature map at block .* image 25:"):
        measure_slices(OnLatents(latents, 20, 2), dict.fromkeys(maps, first_pixels))
