from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.sources import open_path
from vitscope.data.opening import glance
from vitscope.data.source import Source
from vitscope.errors import VitscopeError


def image(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 3), (value, value, value)).save(path)


def values(folder: Source) -> list[tuple[int, int]]:
    samples = folder.samples(np.arange(len(folder)))
    return [(sample.image.getpixel((0, 0))[0], sample.label) for sample in samples]


def test_classes_are_folders_in_the_order_of_their_names(tmp_path: Path) -> None:
    image(tmp_path / "zebra" / "1.PNG", 10)
    image(tmp_path / "ant" / "b.png", 30)
    image(tmp_path / "ant" / "a.bmp", 20)
    (tmp_path / "empty").mkdir()
    (tmp_path / "ant" / "notes.txt").write_text("no image")
    (tmp_path / "ant" / ".hidden.png").write_text("no image")
    # Such as a file browser or a notebook leaves.
    image(tmp_path / ".thumbnails" / "a.png", 40)
    folder = open_path("folder", tmp_path)
    assert folder.classes == ["ant", "zebra"]
    assert folder.empty == ["empty"]
    assert values(folder) == [(20, 0), (30, 0), (10, 1)]
    image(tmp_path / "zebra" / "2.gif", 50)
    assert len(open_path("folder", tmp_path)) == 4
    flat = open_path("folder", tmp_path / "ant")
    assert (flat.classes, values(flat)) == ([], [(20, -1), (30, -1)])


def test_the_listing_tells_folders_apart(tmp_path: Path) -> None:
    names = ("one", "two", "three")
    for name in names:
        image(tmp_path / name / "a" / "a.png", 10)
    image(tmp_path / "three" / "a" / "b.png", 10)
    one, two, three = (open_path("folder", tmp_path / name).provenance for name in names)
    listing = "source_listing_sha256"
    assert one[listing] == two[listing] != three[listing]
    assert one["source"] == "one"


def test_folders_that_cannot_be_meant(tmp_path: Path) -> None:
    with pytest.raises(VitscopeError, match=r"is not a folder: correct the path"):
        open_path("folder", tmp_path / "nowhere")
    with pytest.raises(VitscopeError, match=r"holds no images \(\.bmp, "):
        open_path("folder", tmp_path)
    image(tmp_path / "a.png", 1)
    image(tmp_path / "ant" / "a.png", 1)
    with pytest.raises(VitscopeError, match=r"holds both images and folders of images \(ant\)"):
        open_path("folder", tmp_path)


def test_a_glance_opens_no_file_and_counts_no_more_than_it_must(tmp_path: Path) -> None:
    for name in ("zebra/1.PNG", "ant/b.png", "ant/a.bmp", "ant/notes.txt", "empty/.hidden.png"):
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).touch()
    source = {"kind": "folder", "path": f"{tmp_path}/{{split}}"}
    assert glance(source, "own", 9) == (["ant", "zebra"], 3, ["empty"])
    assert glance(source, "own", 2) == (["ant", "zebra"], 2, ["empty"])
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "a.png").touch()
    assert glance(source, "flat", 9) == ([], 1, [])
    # What is not there yet, and what cannot be seen at a glance.
    assert glance(source, "nowhere", 9) is None
    assert glance({"kind": "npz", "path": str(tmp_path)}, "own", 9) is None


@pytest.mark.parametrize("kept", [0, 50])
def test_a_damaged_image_is_named(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.png"
    image(path, 1)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(VitscopeError, match=r"a\.png is not a readable image: repair or remove"):
        list(open_path("folder", tmp_path).samples(np.array([0])))
