"""YAML files as people write them, read strictly: nothing is taken silently for something else.

Values follow YAML 1.2 (`1e-3` is a number, `no` is text), a key stands only once, and aliases
may not stand for more than a file could say.
"""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from math import isinf
from pathlib import Path
from typing import Any
from unicodedata import category

import yaml
from yaml.constructor import ConstructorError

from vitscope.errors import VitscopeError, quoted

TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
LARGEST = 100_000
INTEGER, FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"
# A sign and the number of digits that every whole number of 64 bits fits in.
LONGEST_INTEGER = 19
# Control characters, surrogate halves, and line ends that only some programs know.
NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Texts that end or hide a page's scripts, into which Snakemake copies a study's texts unescaped;
# and direction marks, which make a text show other words than it holds.
_UNSAFE = re.compile("</|<!--|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    "float": (
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        list("-+.0123456789"),
    ),
    "merge": (r"<<", ["<"]),
}


class _Loader(yaml.SafeLoader):
    """Reads plain values by the rules of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012  (PyYAML's own attribute)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse tags: they turn values into objects that no setting can be."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            reason = f"found the tag {event.tag}, allowed: values without tags"
            raise ConstructorError(None, None, reason, event.start_mark)
        return super().compose_node(parent, index)


class _FastLoader(_Loader):
    """Reads the same twice as fast, with a parser in C whose error messages are poorer."""

    def __init__(self, text: str) -> None:
        super().__init__("")
        parser = yaml.cyaml.CParser(text)  # type: ignore[attr-defined]
        for step in ("check_event", "peek_event", "get_event"):
            setattr(self, step, getattr(parser, step))


for _name, (_pattern, _first) in SCALARS.items():
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(f"(?:{_pattern})$"), _first
    )


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping."""
    try:
        value = parse_yaml(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise VitscopeError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise VitscopeError(
            f"{path} is not text in UTF-8 (byte {error.start}): save it as UTF-8."
        ) from error
    except yaml.YAMLError as error:
        raise VitscopeError(f"{path} is not valid: {_reason(error)}.") from error
    except RecursionError as error:
        raise VitscopeError(f"{path} is not valid: it is nested too deeply.") from error
    except (ValueError, OverflowError) as error:
        raise VitscopeError(f"{path} is not valid: an escape \\U in it is no character.") from error
    if not isinstance(value, dict):
        raise VitscopeError(
            f"{path}: top level: found {quoted(value)}, allowed: keys and their values."
        )
    return value


def parse_yaml(text: str) -> Any:
    """Return the value of a text; the parser in Python reports what is wrong with it."""
    if yaml.__with_libyaml__:
        with suppress(yaml.YAMLError):
            return _load(_FastLoader(text))
    return _load(_Loader(text))


def _load(loader: _Loader) -> Any:
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, {})
        # A copy that shares no parts, so that a change stays where it is made.
        return json.loads(json.dumps(loader.construct_document(node)))
    finally:
        loader.dispose()


def _check(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Refuse keys that are repeated or no text; return how many values a node stands for."""
    if id(node) in sizes:
        if sizes[id(node)] == 0:
            raise _refusal(node, "found an alias of what it is part of: write it out")
        return sizes[id(node)]
    sizes[id(node)] = 0
    if isinstance(node, yaml.MappingNode):
        _check_keys(key for key, _ in node.value)
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node)
    parts = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in parts for part in pair]
    size = 1 + sum(_check(part, sizes) for part in parts)
    if size > LARGEST:
        raise _refusal(node, f"found aliases for more than {LARGEST} values: use fewer")
    sizes[id(node)] = size
    return size


def _check_scalar(node: yaml.ScalarNode) -> None:
    """Refuse numbers that no setting can have, and text that no page or path can show."""
    if node.tag == INTEGER and len(node.value) > LONGEST_INTEGER:
        raise _refusal(node, f"found a number of {len(node.value)} digits, allowed: 18 digits")
    if node.tag == FLOAT and isinf(float(node.value)):
        raise _refusal(node, f"found {quoted(node.value)}, which is too large for a number")
    for character in node.value:
        if category(character) in NO_TEXT and character not in "\t\n":
            raise _refusal(node, f"found the character U+{ord(character):04X}, which is no text")
    if found := _UNSAFE.search(node.value):
        raise _refusal(node, f"found {found[0]!a}, which no page can show: leave it out")


def _check_keys(keys: Iterable[yaml.Node]) -> None:
    lines: dict[str, int] = {}
    for key in keys:
        if not isinstance(key, yaml.ScalarNode):
            raise _refusal(key, "found a list or a mapping as a key, allowed: text")
        if key.tag not in (TEXT, MERGE):
            raise _refusal(key, f"found the key {key.value}, allowed: text, so put it in quotes")
        if key.value in lines:
            reason = f"found the key '{key.value}' again, which line {lines[key.value]} has"
            raise _refusal(key, f"{reason}: keep one")
        lines[key.value] = key.start_mark.line + 1


def _refusal(node: yaml.Node, reason: str) -> ConstructorError:
    return ConstructorError(None, None, reason, node.start_mark)


def _reason(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error).splitlines()[0]
    where = error.problem_mark or error.context_mark
    line = f"line {where.line + 1}: " if where else ""
    context = f"{error.context}, " if error.context else ""
    advice = ": indent with spaces" if "'\\t'" in str(error.problem) else ""
    return f"{line}{context}{error.problem}{advice}"
