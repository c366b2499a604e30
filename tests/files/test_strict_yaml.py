from pathlib import Path

import pytest
import yaml

from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.files import strict_yaml
from vitscope.files.strict_yaml import load_yaml
from vitscope.package_data import ROOT


def write(folder: Path, content: bytes | str) -> Path:
    path = folder / "own.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="needs the parser in C")
@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("config/**/*.yaml"), *ROOT.glob("envs/*.yaml"), *ROOT.glob("profiles/**/*.yaml")],
)
def test_both_parsers_read_the_same(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    fast, other = strict_yaml._FastLoader(text), strict_yaml._Loader(text)
    assert strict_yaml._load_document(fast) == strict_yaml._load_document(other)


def refused(folder: Path, content: bytes | str) -> str:
    path = write(folder, content)
    message = refusal(load_yaml, path)
    assert str(path) in message
    assert "\n" not in message
    assert message.endswith(".")
    return message.replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("12", 12),
        ("true", True),
        ("null", None),
        ("'12'", "12"),
        # YAML 1.1 would make something else of each of these.
        ("no", "no"),
        ("010", "010"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        (".nan", ".nan"),
        ("e3", "e3"),
    ],
)
def test_values_are_those_of_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    read = load_yaml(write(tmp_path, f"key: {text}\n"))["key"]
    assert read == value
    assert type(read) is type(value)


def test_encodings(tmp_path: Path) -> None:
    """A byte order mark and line ends of Windows are no content; what is not UTF-8 is refused."""
    content = b"\xef\xbb\xbfa: 1\r\nb:\r\n  - x\r\n"
    assert load_yaml(write(tmp_path, content)) == {"a": 1, "b": ["x"]}
    assert refused(tmp_path, "title: Lüge".encode("latin-1")) == (
        "FILE is not text in UTF-8 (byte 8): save it as UTF-8."
    )


def test_what_an_alias_repeats_is_a_copy_of_its_own(tmp_path: Path) -> None:
    read = load_yaml(write(tmp_path, "a: &x {list: [1]}\nb: *x\nc: {<<: *x, more: 2}\n"))
    read["a"]["list"].append(2)
    assert read["b"] == {"list": [1]}
    assert read["c"] == {"list": [1], "more": 2}
    # A merged key may be overridden.
    text = "a: &x {k: 1}\nb: &y {<<: *x, k: 2}\nc: {<<: *y, k: 3}\n"
    assert load_yaml(write(tmp_path, text))["c"] == {"k": 3}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: found the key 'a' again, which line 1 has: keep one"),
        ("x:\n  - {a: 1, a: 1}\n", "line 2: found the key 'a' again, which line 2 has: keep one"),
        ("a: 1\n18: 2\n", "line 2: found the key 18, allowed: text, so put it in quotes"),
        ("[a, b]: 2\n", "line 1: found a list or a mapping as a key, allowed: text"),
        ("a:\n\tb: 1\n", "indent with spaces"),
        ("a: [1, 2\nb: 3\n", "line 2: while parsing a flow sequence"),
        ("a: b: c\n", "line 1: mapping values are not allowed here"),
        ("a: 1\n---\nb: 2\n", "line 2: expected a single document in the stream"),
        ("a: *nowhere\n", "line 1: found undefined alias 'nowhere'"),
        ("a: &x [1, *x]\n", "line 1: found an alias of what it is part of: write it out"),
        ("a: !!float nonsense\n", "line 1: found the tag tag:yaml.org,2002:float, allowed: values"),
        ("a: \x01\n", "unacceptable character #x0001"),
        ("a: " + "[" * 2000 + "]" * 2000, "it is nested too deeply"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    message = refused(tmp_path, text)
    assert message.startswith("FILE is not valid: ")
    assert sentence in message


def test_aliases_of_aliases_are_bounded(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    message = refused(tmp_path, "\n".join(lines))
    assert "line 5: found aliases for more than 100000 values: use fewer" in message


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "nothing"),
        ("# only a comment\n", "nothing"),
        ("- a\n- b\n", "['a', 'b']"),
        ("a", "'a'"),
    ],
)
def test_the_top_level_must_be_keys_and_values(tmp_path: Path, content: str, found: str) -> None:
    assert refused(tmp_path, content) == (
        f"FILE: top level: found {found}, allowed: keys and their values."
    )


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "no", "No such file")):
        with pytest.raises(VitscopeError, match=f"^Cannot read .*: {reason}"):
            load_yaml(path)
