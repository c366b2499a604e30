import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure
from PIL import Image

from vitscope import __version__
from vitscope.drawing.saving import FORMATS, save, style
from vitscope.errors import VitscopeError
from vitscope.package_data import STYLE

ROOT = Path(__file__).parents[2]
FACTS = {"study": "mini (2 models, é)", "data": "shapes32, test", "checkpoint of vit": "ab" * 32}

RENDER = """
import sys
from matplotlib.figure import Figure
from vitscope.drawing.saving import save, style
from vitscope.package_data import STYLE
with style(STYLE):
    figure = Figure()
    figure.subplots().plot([1, 3, 2], label="µ", marker="o")
    figure.legend()
    for target in sys.argv[1:]:
        save(figure, target, "fig9", {"study": "mini"})
"""


def render(folder: Path, **environment: str) -> dict[str, bytes]:
    """Render in a fresh interpreter, as two runs of the workflow would."""
    folder.mkdir()
    targets = [folder / f"fig9.{suffix}" for suffix in FORMATS]
    subprocess.run(
        [sys.executable, "-c", RENDER, *targets],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        check=True,
    )
    return {target.suffix: target.read_bytes() for target in targets}


@pytest.mark.nightly
def test_the_same_figure_gives_the_same_bytes_anywhere(tmp_path):
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.size: 20\nsvg.fonttype: path\naxes.grid: True\n")
    one = render(tmp_path / "one", PYTHONHASHSEED="1", TZ="UTC")
    another = {"MATPLOTLIBRC": str(settings), "USER": "somebody", "SOURCE_DATE_EPOCH": "1"}
    other = render(tmp_path / "other_folder", PYTHONHASHSEED="2", TZ="Asia/Seoul", **another)
    assert one == other
    for content in one.values():
        assert str(tmp_path).encode() not in content
        assert not re.search(rb"CreationDate|ModDate|<dc:date>|20\d\d-\d\d-\d\d", content)


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_the_last_digits_of_a_layout_are_in_no_byte(tmp_path: Path, ending: str) -> None:
    """A solver leaves them to the addresses of memory; files are named after where panels lie."""
    drawn = []
    for nth, more in enumerate((0, 1e-11)):
        with style(STYLE):
            figure = Figure(figsize=(3, 3))
            groups = figure.subfigures(1, 2, width_ratios=(1, 1.3 + more))
            for group in groups:
                for axes in group.subplots(2, 1, height_ratios=(1, 0.7 - more)):
                    axes.plot([1, 3, 2])
            save(figure, tmp_path / f"{nth}.{ending}", "fig", {})
        drawn.append((tmp_path / f"{nth}.{ending}").read_bytes())
    assert drawn[0] == drawn[1]


@pytest.fixture
def figure():
    figure = Figure(figsize=(2, 1))
    figure.text(0.5, 0.5, "Normalized depth")
    return figure


@pytest.fixture
def saved(figure, tmp_path):
    def save_as(suffix):
        path = tmp_path / f"fig9.{suffix}"
        with style(STYLE):
            save(figure, path, "fig9 of mini", FACTS)
        return path

    return save_as


def test_a_pdf_embeds_its_fonts_and_says_what_made_it(saved):
    content = saved("pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"/Title (fig9 of mini)" in content
    subject = "; ".join(f"{key}: {value}" for key, value in FACTS.items())
    assert subject.encode("utf-16-be").replace(b"(", b"\\(").replace(b")", b"\\)") in content
    assert f"/Creator (vitscope {__version__})".encode() in content


def test_an_svg_keeps_text_and_says_what_made_it(saved):
    root = ElementTree.parse(saved("svg")).getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["Normalized depth"]
    work = root.find(".//{*}Work")
    assert work.findtext("{*}title") == "fig9 of mini"
    described = "; ".join(f"{key}: {value}" for key, value in FACTS.items())
    assert work.findtext("{*}description") == described
    assert work.findtext("{*}creator//{*}title") == f"vitscope {__version__}"


def test_who_does_not_see_an_svg_is_told_what_it_shows(figure, tmp_path):
    with style(STYLE):
        save(figure, tmp_path / "a.svg", "A & B", FACTS, "Values <0 & more.")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert [child.tag.rpartition("}")[2] for child in root][:2] == ["title", "desc"]
    assert [child.text for child in root][:2] == ["A & B", "Values <0 & more."]


def test_a_png_says_what_made_it(saved):
    with Image.open(saved("png")) as image:
        entries = image.info
        assert image.size == (600, 300)
    assert entries.items() >= {"Title": "fig9 of mini", **FACTS}.items()
    assert entries["Software"] == f"vitscope {__version__}"


def test_an_unknown_format_is_refused_and_leaves_nothing(figure, tmp_path):
    with pytest.raises(VitscopeError, match=r"fig9\.bmp: a figure is one of pdf, svg, png"):
        save(figure, tmp_path / "fig9.bmp", "fig9", FACTS)
    assert not list(tmp_path.iterdir())


def test_a_missing_style_is_refused(tmp_path):
    with pytest.raises(VitscopeError, match="no style file"), style(tmp_path / "none"):
        pass


def test_the_style_ends_with_the_block():
    before = matplotlib.rcParams["font.size"]
    with style(STYLE):
        assert matplotlib.rcParams["font.size"] == 7
    assert matplotlib.rcParams["font.size"] == before


def test_a_layout_that_did_not_fit_is_refused(tmp_path: Path) -> None:
    with style(STYLE):
        figure = Figure(figsize=(1, 1))
        for axes in figure.subplots(1, 5):
            axes.set_ylabel("a label")
        with pytest.raises(
            VitscopeError, match=r"its panels and their text do not fit into 1x1 inch"
        ):
            save(figure, tmp_path / "a.png", "a", {})
    assert not [*tmp_path.iterdir()]
