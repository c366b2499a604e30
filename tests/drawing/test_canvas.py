import os
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from vitscope import __version__
from vitscope.drawing import canvas
from vitscope.drawing.kinds import Member
from vitscope.errors import VitscopeError

FAMILIES = ["resnet", "vit", "pit", "swin", "alternet", "mixer", "convnext"]
ROOT = Path(__file__).parents[2]
FACTS = {"study": "mini (2 models, é)", "data": "shapes32, test", "checkpoint of vit": "ab" * 32}

# Names that stand for all looks of families that are not known.
OTHERS = [f"family{i}" for i in range(40)]
OTHER_LOOKS = {canvas.look_of(name): name for name in OTHERS}

RENDER = """
import sys
from pathlib import Path
from vitscope.figures import Member, canvas, draw
from vitscope.published import read_published
root, tests, *targets = sys.argv[1:]
sys.path.insert(0, tests)
from conftest import resnet, vit
import pandas as pd
members = [Member("resnet", "ResNet", "resnet"), Member("vit", "ViT", "vit")]
points = root + "/resources/published/fig9.csv"
published = read_published(points, {"index", "variance"}, {"vit": "ViT"})
with canvas.style(root + "/resources/style.mplstyle"):
    tables = {"feature_variance": pd.concat([resnet(), vit()])}
    figure = draw("feature_variance", tables, members, published)
    for target in targets:
        canvas.save(figure, target, "fig9", {"study": "mini"})
"""


def render(folder: Path, **environment: str) -> dict[str, bytes]:
    """Render in a fresh interpreter, as two runs of the workflow would."""
    folder.mkdir()
    targets = [folder / f"fig9.{suffix}" for suffix in canvas.FORMATS]
    subprocess.run(
        [sys.executable, "-c", RENDER, ROOT, ROOT / "tests" / "figures", *targets],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        check=True,
    )
    return {target.suffix: target.read_bytes() for target in targets}


def test_the_same_figure_gives_the_same_bytes_anywhere(tmp_path):
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.size: 20\nsvg.fonttype: path\naxes.grid: True\n")
    one = render(tmp_path / "one", PYTHONHASHSEED="1", TZ="UTC")
    other = render(
        tmp_path / "other_folder",
        PYTHONHASHSEED="2",
        TZ="Asia/Seoul",
        SOURCE_DATE_EPOCH="1",
        MATPLOTLIBRC=str(settings),
        USER="somebody",
    )
    assert one == other
    for content in one.values():
        assert str(tmp_path).encode() not in content
        assert not re.search(rb"CreationDate|ModDate|<dc:date>|20\d\d-\d\d-\d\d", content)


@pytest.fixture
def figure():
    figure = Figure(figsize=(2, 1))
    figure.text(0.5, 0.5, "Normalized depth")
    return figure


@pytest.fixture
def saved(figure, style_file, tmp_path):
    def save(suffix):
        path = tmp_path / f"fig9.{suffix}"
        with canvas.style(style_file):
            canvas.save(figure, path, "fig9 of mini", FACTS)
        return path

    return save


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
    told = "; ".join(f"{key}: {value}" for key, value in FACTS.items())
    assert work.findtext("{*}description") == told
    assert work.findtext("{*}creator//{*}title") == f"vitscope {__version__}"


def test_a_png_says_what_made_it(saved):
    with Image.open(saved("png")) as image:
        told = image.info
        assert image.size == (600, 300)
    assert told.items() >= {"Title": "fig9 of mini", **FACTS}.items()
    assert told["Software"] == f"vitscope {__version__}"


def test_an_unknown_format_is_told_and_leaves_nothing(figure, tmp_path):
    with pytest.raises(VitscopeError, match=r"fig9\.bmp: a figure is one of pdf, svg, png"):
        canvas.save(figure, tmp_path / "fig9.bmp", "fig9", FACTS)
    assert not list(tmp_path.iterdir())


def test_a_missing_style_is_told(tmp_path):
    with pytest.raises(VitscopeError, match="no style file"), canvas.style(tmp_path / "none"):
        pass


def test_the_style_ends_with_the_block(style_file):
    import matplotlib

    before = matplotlib.rcParams["font.size"]
    with canvas.style(style_file):
        assert matplotlib.rcParams["font.size"] == 7
    assert matplotlib.rcParams["font.size"] == before


def members_of(*families: str) -> list[Member]:
    return [Member(f"m{i}", f"Model {i}", family) for i, family in enumerate(families)]


def test_the_first_of_each_look_has_it_as_it_is():
    families = [*FAMILIES, *OTHER_LOOKS.values()]
    assert canvas.looks_of(members_of(*families)) == [canvas.look_of(name) for name in families]


def test_models_of_one_look_share_its_marker_and_nothing_else_that_tells_them_apart():
    families = [name for name in [*FAMILIES, *OTHER_LOOKS.values()] for _ in range(6)]
    looks = canvas.looks_of(members_of(*families))
    assert [look.marker for look in looks] == [canvas.look_of(name).marker for name in families]
    assert len({look.color for look in looks}) == len(looks)
    for first in range(0, len(looks), 6):
        assert len({look.dashes for look in looks[first : first + 6]}) == 6


def test_families_that_look_alike_count_as_one():
    assert canvas.look_of("resnet") == canvas.look_of("timm_resnet")
    twins = [name for name in OTHERS if canvas.look_of(name) == canvas.look_of(OTHERS[0])][:6]
    for families in (["resnet", "timm_resnet"] * 3, twins):
        assert len(set(families)) > 1
        looks = canvas.looks_of(members_of(*families))
        assert looks == canvas.looks_of(members_of(*families[:1] * 6))
        assert len({look.color for look in looks}) == 6


def test_more_models_of_one_look_than_shades_still_differ():
    looks = canvas.looks_of(members_of(*["vit"] * 36))
    assert len(set(looks)) == 36
    assert len({(look.color, look.dashes) for look in looks}) == 36
    assert len({(look.color, look.half_filled) for look in looks[:12]}) == 12


def test_shades_of_a_colour_can_be_seen():
    white = np.array([1, 1, 1])
    for family in FAMILIES:
        shades = [
            np.array(to_rgb(look.color)) for look in canvas.looks_of(members_of(*[family] * 6))
        ]
        assert min(np.abs(one - other).max() for one, other in combinations(shades, 2)) > 0.06
        assert min(np.abs(shade - white).max() for shade in shades) > 0.25


def test_hollow_markers_are_never_half_filled(style_file):
    with canvas.style(style_file):
        looks = canvas.looks_of(members_of("vit", "vit"))
        assert [look.half_filled for look in looks] == [False, True]
        lines = [Line2D([], [], **look.hollow) for look in looks]
    assert [line.get_fillstyle() for line in lines] == ["full", "full"]
    assert {line.get_markerfacecolor() for line in lines} == {"white"}


ROWS = pd.DataFrame(
    {
        "model": ["b", "a", "a", "a"],
        "snapshot": ["end", "end", "init", "end"],
        "index": [0, 2, 0, 1],
    }
)


def test_rows_are_those_of_the_model_in_order():
    found = canvas.rows_of("lesion", ROWS, "a", ["index"])
    assert found["index"].tolist() == found.index.tolist() == [0, 1, 2]
    assert canvas.rows_of("lesion", ROWS, "a", snapshot="end")["index"].tolist() == [2, 1]


def test_a_model_without_rows_is_told():
    told = "The lesion table has no model 'c': delete the table and run again"
    with pytest.raises(VitscopeError, match=told):
        canvas.rows_of("lesion", ROWS, "c")
    told = "The hessian table has no model 'b' at 'init': delete the table and run again"
    with pytest.raises(VitscopeError, match=told):
        canvas.rows_of("hessian", ROWS, "b", snapshot="init")
