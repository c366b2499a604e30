"""The figures of the last run of the default study, pixel by pixel, against the committed ones.

`make regenerate` runs this after the figures are made; `make accept` makes new references.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vitscope.package_data import ROOT
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

FIGURES = ROOT / "figures"
EXPECTED = Path(__file__).with_name("expected")
MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
NAMES = [*MINI.figures, *MINI.buildups]
# Root mean square of the differences of 8-bit channels. A curve that moves by a pixel is above it;
# the last digits of another processor are not.
TOLERANCE = 2


@dataclass(frozen=True)
class Page:
    """A figure as the workflow rendered it; pytest-mpl saves it as it does figures."""

    path: Path

    def savefig(self, target: Path | str, **_: Any) -> None:
        # Half the size is enough to see what moved, and a quarter of the bytes.
        with Image.open(self.path) as image:
            image.convert("RGB").reduce(2).save(target, optimize=True)


def test_every_figure_of_the_default_study_has_a_reference() -> None:
    assert {path.stem for path in EXPECTED.glob("*.png")} == {f"test_figure_{n}" for n in NAMES}


@pytest.mark.last_run
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.mpl_image_compare(baseline_dir="expected", tolerance=TOLERANCE, savefig_kwargs={})
def test_figure(name: str) -> Page:
    page = FIGURES / f"{name}.png"
    assert page.exists(), f"{page} is missing: run `snakemake` first."
    return Page(page)
