"""The comparison of pixels passes what is as expected, and fails what moved."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.pixels.test_figures import NAMES
from vitscope.package_data import ROOT

EXPECTED = ROOT / "tests" / "pixels" / "expected"


def compare(figures: Path) -> subprocess.CompletedProcess[str]:
    command = ["-m", "pytest", "-q", "-m", "last_run", "--mpl", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, *command, "tests/pixels", "-k", "fig9] or fig1b"],
        cwd=ROOT,
        env=os.environ | {"VITSCOPE_FIGURES": str(figures)},
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.fixture
def figures(tmp_path: Path) -> Path:
    """Figures twice the size of the references, which halves to these."""
    for name in ("fig9", "fig1b"):
        with Image.open(EXPECTED / f"test_figure_{name}.png") as image:
            pixels = np.asarray(image.convert("RGB"))
        doubled = pixels.repeat(2, axis=0).repeat(2, axis=1)
        Image.fromarray(doubled).save(tmp_path / f"{name}.png")
    return tmp_path


def test_every_figure_of_the_default_study_has_a_reference() -> None:
    assert {path.stem for path in EXPECTED.glob("*.png")} == {f"test_figure_{n}" for n in NAMES}


@pytest.mark.nightly
def test_the_same_pixels_pass(figures: Path) -> None:
    done = compare(figures)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_figure_that_moved_by_a_pixel_fails(figures: Path) -> None:
    with Image.open(figures / "fig9.png") as image:
        moved = np.roll(np.asarray(image), 2, axis=0)
    Image.fromarray(moved).save(figures / "fig9.png")
    done = compare(figures)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "RMS Value" in done.stdout


@pytest.mark.nightly
def test_a_figure_that_is_missing_is_reported(figures: Path) -> None:
    (figures / "fig1b.png").unlink()
    assert "fig1b.png is missing: run `snakemake` first." in compare(figures).stdout
