import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from tests.helpers.jobs import values_of
from tests.settings.test_study import MISSING, loaded, refusal
from vitscope.errors import VitscopeError
from vitscope.jobs.figures import facts_of_figure
from vitscope.package_data import ROOT
from vitscope.settings.study import Study
from vitscope.studies.data_sets import class_names_in_data_set

CLASSES = ("ant", "bee", "cat", "dog", "eel")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images of each of five classes; the data set `folder` of the study is read from it."""
    for name, number in product(CLASSES, range(3)):
        file = tmp_path / "images" / name / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), number).save(file)
    return tmp_path / "images"


def changes(folder: Path, **more: object) -> dict[str, object]:
    """Return a study that measures the folder and asks for no more than it has."""
    few = {"data.folder.source.path": str(folder), "analysis.images": 15}
    return few | {f"data.folder.{key}": value for key, value in more.items()}


def built_by(study: Study) -> dict[str, Any]:
    return values_of("build_split", study, dataset="folder", split="test")["settings"]


def test_what_is_there_is_read(tmp_path: Path, folder: Path) -> None:
    study = loaded(tmp_path, **changes(folder))
    assert class_names_in_data_set(study.data["folder"], "test") == dict(enumerate(CLASSES))
    assert class_names_in_data_set(study.data["generated"], "test") == {}


def test_more_images_than_a_folder_has(tmp_path: Path, folder: Path) -> None:
    assert refusal(tmp_path, **changes(folder) | {"analysis.images": 16}) == (
        "analysis.images: the study measures 16 images and data.folder.splits.test has 15: write "
        "`images: 15` in the split, or lower analysis.images."
    )
    # What is left out is 256.
    left_out = {"data.folder.source.path": str(folder)}
    assert "measures 256 images" in refusal(tmp_path, **left_out)
    assert refusal(tmp_path, **changes(folder, splits={"test": {"images": 16}})) == (
        "data.folder.splits.test: the study asks for 16 images and the source has 15: write "
        "`images: 15`, or fewer."
    )


def test_fewer_images_are_enough_where_no_figure_measures_more(
    tmp_path: Path, folder: Path
) -> None:
    many = changes(folder) | {"analysis.images": 16}
    study = loaded(tmp_path, **many | {"data.folder.splits": {"test": {"images": 15}}})
    assert study.images("former") == 15
    loaded(tmp_path, **many | {"figures.one.models": ["net"]})
    loaded(tmp_path, **many | {"figures.one": {"kind": "robustness", "models": ["former"]}})


def test_a_folder_that_will_be_put_there_later(tmp_path: Path) -> None:
    study = loaded(tmp_path, **changes(tmp_path / "nowhere", class_names=[*"edcba"]))
    assert class_names_in_data_set(study.data["folder"], "test") == dict(enumerate("edcba"))


def test_names_in_a_file_are_those_of_the_study(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("\n".join(reversed(CLASSES)))
    study = loaded(tmp_path, **changes(folder, class_names=str(file)))
    assert study.data["folder"].class_names == [*reversed(CLASSES)]
    assert study.settings["data"]["folder"]["class_names"] == [*reversed(CLASSES)]
    assert built_by(study)["class_names"] == [*reversed(CLASSES)]


def test_a_caption_says_which_class_is_which(tmp_path: Path, folder: Path) -> None:
    index = {name: 3 * number for number, name in enumerate(CLASSES)}
    plain = loaded(tmp_path, **changes(folder))
    mapped = loaded(tmp_path, **changes(folder, class_index=index, classes=1000))
    key = "Classes of folder"
    assert facts_of_figure(plain, "one")[key] == "0 ant, 1 bee, 2 cat, 3 dog, 4 eel"
    assert facts_of_figure(mapped, "one")[key] == "0 ant, 3 bee, 6 cat, 9 dog, 12 eel"
    assert key not in facts_of_figure(plain, "two")


def test_a_folder_that_cannot_be_meant(tmp_path: Path, folder: Path) -> None:
    Image.new("L", (8, 8)).save(folder / "loose.png")
    with pytest.raises(VitscopeError, match=r"holds both images and folders of images \(ant, bee"):
        loaded(tmp_path, **changes(folder))


GREY = {"mean": [0.5], "std": [0.25]}


def test_a_model_has_as_many_channels_as_its_images(tmp_path: Path, folder: Path) -> None:
    grey = changes(folder, **GREY) | {"models.former.std": MISSING}
    study = loaded(tmp_path, **grey)
    assert (study.network("former")["mean"], study.network("former")["std"]) == ([0.5], [0.25])
    assert built_by(study)["channels"] == 1
    assert refusal(tmp_path, **grey | {"models.former.mean": [0.1, 0.2, 0.3]}) == (
        "models.former.mean: found 3 numbers, allowed: 1, one for each channel of the images of "
        "data.folder: give the model a data set of its own."
    )
    assert refusal(tmp_path, **changes(folder, **GREY)) == (
        "models.former.std: found 3 numbers, allowed: 1, as many as `mean` has: one for each "
        "channel."
    )


def test_the_examples_of_the_manual(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "data.md").read_text(encoding="utf-8").partition("## A new source")[0]
    for name in ("ant", "bee", "zebra"):
        (tmp_path / "images" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "images" / name / "0.png")
    found = re.findall(r"^((?:    (?:class|mean|std).*\n)+)", text, re.MULTILINE)
    names, index, grey = (yaml.safe_load(each) for each in found)
    few = changes(tmp_path / "images") | {"analysis.images": 3, "models.former.std": MISSING}

    def read(**more: object) -> Study:
        return loaded(tmp_path, **few | {f"data.folder.{key}": more[key] for key in more})

    study = read(classes=3, **names)
    assert class_names_in_data_set(study.data["folder"], "test") == {0: "zebra", 1: "ant", 2: "bee"}
    study = read(**index)
    assert class_names_in_data_set(study.data["folder"], "test") == {
        309: "bee",
        310: "ant",
        340: "zebra",
    }
    data = read(classes=3, **grey).data["folder"]
    assert (data.mean, data.std, data.channels) == ((0.286,), (0.353,), 1)


def test_a_class_without_an_image_is_named(tmp_path: Path, folder: Path) -> None:
    (folder / "wasp").mkdir()
    listed = ", ".join(sorted(CLASSES))
    assert refusal(tmp_path, **changes(folder, classes=len(CLASSES) + 1)).startswith(
        f"data.folder.splits.test: the source has {len(CLASSES)} classes ({listed}, and no image "
        f"in the folder wasp) and the study says {len(CLASSES) + 1}: correct"
    )
