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
# The references are the pictures of the pages, too.
PAGES = {name: f"{name}.png" for name in [*MINI.figures, *MINI.buildups]}
PAGES["overview"] = "mini/overview.png"
# Pictures of another study, which `make images` draws.
OF_CIFAR100 = {"fig9.png": "fig9.png", "overview_cifar100.png": "overview.png"}
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
    assert {path.stem for path in EXPECTED.glob("*.png")} == {f"test_figure_{n}" for n in PAGES}


@pytest.mark.last_run
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.mpl_image_compare(baseline_dir="expected", tolerance=TOLERANCE, savefig_kwargs={})
def test_figure(name: str) -> Page:
    page = FIGURES / PAGES[name]
    assert page.exists(), f"{page} is missing: run `snakemake` first."
    return Page(page)


@pytest.mark.last_run
@pytest.mark.parametrize("picture", OF_CIFAR100)
def test_pictures_of_the_pages_are_those_of_the_last_run(picture: str) -> None:
    page = FIGURES / "cifar100" / OF_CIFAR100[picture]
    if not page.exists():
        pytest.skip(f"needs {page}: run `make images`")
    with Image.open(page) as drawn, Image.open(ROOT / "docs" / "images" / picture) as shown:
        assert drawn.convert("RGB").tobytes() == shown.convert("RGB").tobytes()


def test_every_picture_of_the_pages_is_on_one() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    for picture in (ROOT / "docs" / "images").iterdir():
        assert f"images/{picture.name})" in text
