from pathlib import Path
from typing import Any

import pytest

from vitscope.data.class_numbers import (
    Numbering,
    imagenet_class_names,
    list_classes,
    number_classes,
    read_class_names,
)
from vitscope.errors import VitscopeError
from vitscope.networks.building.timm_import import import_timm

FOLDERS = ["ant", "bee", "cat"]


def numbered(found: list[str], classes: int = 3, **keys: Any) -> Numbering:
    return number_classes("here", found, {"classes": classes, **keys})


def test_classes_have_numbers_by_place_by_name_or_by_index() -> None:
    assert numbered(FOLDERS) == (FOLDERS, None)
    assert numbered([]) == (["0", "1", "2"], None)
    names = ["cat", "ant", "bee"]
    assert numbered(FOLDERS, class_names=names) == (names, [1, 2, 0])
    # Some of the classes of a network, and classes that have numbers alone.
    assert numbered(["ant"], class_names=names) == (names, [1])
    assert numbered([], class_names=names) == (names, None)
    index = {"ant": 4, "bee": 0, "cat": 2}
    names = ["bee", "1", "cat", "3", "ant"]
    assert numbered(FOLDERS, 5, class_index=index) == (names, [4, 0, 2])


@pytest.mark.parametrize(
    ("found", "keys", "sentence"),
    [
        (FOLDERS, {"classes": 2}, r"3 classes \(ant, bee, cat\) and the study says 2: correct"),
        (FOLDERS, {"classes": 9}, r"says 9: .* say in `class_index` which number each has, or"),
        (
            FOLDERS,
            {"class_names": ["ant", "bee", "cats"]},
            r"has the class 'cat' and class_names names ant, bee, cats: add .* mean 'cats'\?",
        ),
        (FOLDERS, {"class_names": ["ant", "bee"]}, r"class_names has 2 names and .* 3 classes"),
        ([], {"class_names": ["ant", "bee", "ant"]}, r"class_names has 'ant' 2 times: name each"),
        (FOLDERS, {"class_index": {"ant": 0, "bee": 1}}, r"class 'cat' and class_index names ant"),
        (
            ["ant", "bee"],
            {"class_index": {"ant": 0, "bees": 1, "bee": 2}},
            r"class_index\.bees: the source has no class of this name, .* mean 'bee'\?",
        ),
        (
            FOLDERS,
            {"class_index": {"ant": 0, "bee": 3, "cat": 1}},
            r"class_index\.bee: found 3, allowed: 0 to 2, for the study says 3 classes\.",
        ),
        (
            FOLDERS,
            {"class_index": {"ant": 0, "bee": 2, "cat": 2}},
            r"class_index\.cat: found 2, which 'bee' has: give each class a number of its own\.",
        ),
        ([], {"class_index": {"ant": 0}}, r"goes by the names of classes, which this source does"),
    ],
)
def test_what_fits_no_class(found: list[str], keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(VitscopeError, match=rf"^here: .*{sentence}"):
        numbered(found, **keys)


def test_names_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("\ufeffcat\r\nhouse ant \nbee\n\n", encoding="utf-8")
    assert read_class_names("here", file) == ["cat", "house ant", "bee"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", r"is no list of names: write one name a line, and no empty line\.$"),
        (b"ant\n\nbee\n", r"is no list of names"),
        (b"ant\x00\n", r"is no list of names"),
        (b"ant\n" * 2_500_001, r"is no list of names"),
        (b"caf\xe9\n", r"is not text in UTF-8 \(byte 3\): save it as UTF-8\.$"),
        (None, r"cannot be read \(No such file or directory\): correct the path\.$"),
    ],
)
def test_no_list_of_names(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    file = tmp_path / "names.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(VitscopeError, match=rf"^here: {file} {sentence}"):
        read_class_names("here", file)


def test_which_class_has_which_number_is_said_on_one_line() -> None:
    assert list_classes({0: "ant", 7: "b\nee\udc80"}) == r"0 ant, 7 b\nee\udc80"
    many = dict(enumerate("abcdef"))
    assert list_classes(many, most=6) == "0 a, 1 b, 2 c, 3 d, 4 e, 5 f"
    assert list_classes(many, most=3) == "0 a, 1 b, ..., 5 f"


def test_the_names_of_imagenet() -> None:
    """As timm has them, which is asked for them in its own way."""
    names = imagenet_class_names()
    theirs = import_timm("timm.data").ImageNetInfo()
    assert len(names) == len({*names}) == theirs.num_classes() == 1000
    for number, name in enumerate(names):
        first, _, synset = name.partition(" (")
        assert theirs.index_to_description(number).split(",")[0] == first
        assert synset in ("", f"{theirs.index_to_label_name(number)})")
    assert (names[0], names[96]) == ("tench", "toucan")
    assert [name for name in names if "crane" in name][:1] == ["crane (n02012849)"]
