import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.refusals import refusal
from tests.runs.copies import SETTINGS
from tests.security.contained import check_sentence, refusal_of
from vitscope.errors import VitscopeError
from vitscope.files.strict_yaml import load_yaml
from vitscope.studies.loading import load_study

STUDY: dict[str, Any] = deepcopy(SETTINGS)
STUDY["models"]["vit"]["checkpoint"] = {"path": "vit.pth"}
STUDY["models"]["resnet"]["checkpoint"] = {"path": "resnet.pth"}


def refusal_of_study(folder: Path, study: dict[str, Any], name: str = "own") -> str:
    """Write a study and read it; return the sentence in which it is refused."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(study, allow_unicode=True), encoding="utf-8")
    return check_sentence(refusal(load_study, path))


TAGS = [
    "!!python/object/apply:os.system ['touch ran']",
    "!!python/name:os.system",
    "!!binary aGk=",
    "!own a",
    "!<tag:yaml.org,2002:python/name:os.system> a",
]


@pytest.mark.parametrize("value", TAGS)
def test_tags_make_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "own.yaml"
    path.write_text(f"title: {value}\n")
    assert "found the tag" in refusal(load_yaml, path)
    assert [file.name for file in tmp_path.iterdir()] == ["own.yaml"]


def laughs(merged: bool) -> str:
    """Return aliases of aliases that stand for ten to the power of twelve."""
    lines = ["a0: &a0 {x: 1}" if merged else "a0: &a0 [x]"]
    for level in range(1, 13):
        inner = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{inner}]}}" if merged else f"[{inner}]"))
    return "\n".join(lines)


GREEDY = {
    "aliases of aliases": laughs(merged=False),
    "merges of merges": laughs(merged=True),
    "an alias of itself": "a: &a [*a]",
    "a merge of itself": "a: &a {<<: *a}",
    "two merges": "a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: *a, <<: *b}",
    "lists in lists": "a: " + "[" * 100_000,
    "keys in keys": "".join(" " * n + "a:\n" for n in range(2000)),
    "braces in braces": "a: " + "{a: " * 20_000,
    "a number of many digits": "a: " + "9" * 300_000,
    "a number beyond all numbers": "a: 1e999",
    "a million characters without a space": "a" * 1_000_000,
    "many colons": "a" + ":" * 300_000,
    "many anchors": "\n".join(f"a{n}: &a{n} 1" for n in range(2000)) + "\nb: *c",
    "a zero character": "a: b\0c",
    "an escaped zero character": 'a: "b\\0c"',
    "half of a character": 'a: "\\uD800"',
    "an escape of no character": 'a: "\\UFFFFFFFF"',
    "a control character": 'a: "\\e[31m"',
    "a line end of Unicode": 'a: "\\L"',
    "UTF-16": "a: b".encode("utf-16").decode("latin-1"),
}


@pytest.mark.parametrize("text", ["exe.\u202egnp", "a\u2066b", "\u200fa"])
@pytest.mark.parametrize("place", ["title", "description", "label"])
def test_what_a_page_cannot_show_is_refused(tmp_path: Path, text: str, place: str) -> None:
    study = deepcopy(STUDY)
    (study["models"]["vit"] if place == "label" else study)[place] = text
    sentence = refusal_of_study(tmp_path, study)
    assert re.search(r"line \d+: found '.*', which no page can show", sentence)


@pytest.mark.parametrize("name", GREEDY)
def test_what_no_setting_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(GREEDY[name], encoding="utf-8")
    refusal_of(lambda: load_yaml(path))


NAMES = [
    *("../outside", "/outside", "a/b", "", ".", "~", "-rf", "a\n", "a\\b", "*", "{model}"),
    *("$(touch ran)", "%2e%2e", "\u2024\u2024\u2215outside", "\u0430bc", "vit\u202e", "١"),
    *("a" * 64, "fig" + "9_a" * 20, "a" * 65, "a" * 10_000),
]


def with_name(section: str, name: str) -> dict[str, Any]:
    """Return a study with another name for a data set, model, split, snapshot or figure."""
    study = deepcopy(STUDY)
    if section == "splits":
        study["data"]["shapes32"]["splits"][name] = {}
    elif section == "snapshots":
        study["models"]["vit"]["snapshots"] = {name: {"path": "a.pth"}}
    else:
        study[section][name] = next(iter(study[section].values()))
    return study


@pytest.mark.parametrize("section", ["data", "splits", "models", "snapshots", "figures"])
@pytest.mark.parametrize("name", NAMES)
def test_names_stay_in_their_folder(tmp_path: Path, section: str, name: str) -> None:
    refusal_of_study(tmp_path, with_name(section, name))


# Without an extension, a file of some of these names has another stem.
@pytest.mark.parametrize(
    "name", [n for n in NAMES if "/" not in n and len(n) < 200 and Path(f"{n}.yaml").stem == n]
)
def test_names_of_studies_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    refusal_of_study(tmp_path, STUDY, name)


@settings(max_examples=60)
@given(name=st.text(max_size=70))
def test_a_name_that_is_taken_is_one_part_of_a_path(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(with_name("figures", name)), encoding="utf-8")
    try:
        study = load_study(path)
    except VitscopeError as error:
        check_sentence(str(error))
        return
    assert name in study.settings["figures"]
    assert (folder / name).parent == folder
    assert len(name.encode()) <= 64
    assert name.isascii()


@pytest.mark.parametrize("place", ["title", "label"])
@pytest.mark.parametrize("text", ["two\nlines", "ends\n", "x" * 201])
def test_titles_and_labels_are_one_line(tmp_path: Path, place: str, text: str) -> None:
    study = deepcopy(STUDY)
    holder = study if place == "title" else study["models"]["vit"]
    holder[place] = text
    assert f"{place}: found " in refusal_of_study(tmp_path, study)


@settings(max_examples=200)
@given(
    data=st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes_are_settings_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(data)
    try:
        load_yaml(path)
    except VitscopeError as error:
        check_sentence(str(error))


@pytest.mark.parametrize("path", ["{model}/a.pth", "a}.pth", "{", "a\nb", ""])
def test_no_path_holds_a_wildcard(tmp_path: Path, path: str) -> None:
    study = deepcopy(STUDY)
    study["models"]["vit"]["checkpoint"] = {"path": path}
    assert "allowed: a path without braces" in refusal_of_study(tmp_path, study)
