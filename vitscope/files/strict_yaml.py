"""Read YAML files strictly, so that no value is silently misread.

Values follow YAML 1.2 (`1e-3` is a number, `no` is text). Repeated keys are errors, and so are
aliases that expand to more values than a file could hold.
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
# The maximum length of a whole number: a sign and 18 digits, which fit into 64 bits.
LONGEST_INTEGER = 19
# The Unicode categories of control characters, surrogate halves, and line ends that only some
# programs know.
NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Direction marks, which make a text look like another.
_UNSAFE = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
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
        """Refuse tags, which turn values into objects that are no settings."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            reason = f"found the tag {event.tag}, allowed: values without tags"
            raise ConstructorError(None, None, reason, event.start_mark)
        return super().compose_node(parent, index)


class _FastLoader(_Loader):
    """Reads the same values in half the time by a parser in C, whose error messages are poorer."""

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
        raise VitscopeError(f"{path} is not valid: {_explain_yaml_error(error)}.") from error
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
    """Return the value of a YAML text; on an error, parse again in Python for a better message."""
    if yaml.__with_libyaml__:
        with suppress(yaml.YAMLError):
            return _load_document(_FastLoader(text))
    return _load_document(_Loader(text))


def _load_document(loader: _Loader) -> Any:
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_yaml_node(node, {})
        # Copy through JSON, so that aliases become separate objects, which can change separately.
        return json.loads(json.dumps(loader.construct_document(node)))
    finally:
        loader.dispose()


def _check_yaml_node(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Refuse invalid keys, scalars and aliases; return how many values a node expands to."""
    if id(node) in sizes:
        if sizes[id(node)] == 0:
            raise _node_error(node, "found an alias of what it is part of: write it out")
        return sizes[id(node)]
    sizes[id(node)] = 0
    if isinstance(node, yaml.MappingNode):
        _check_yaml_keys(key for key, _ in node.value)
    if isinstance(node, yaml.ScalarNode):
        _check_yaml_scalar(node)
    parts = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in parts for part in pair]
    size = 1 + sum(_check_yaml_node(part, sizes) for part in parts)
    if size > LARGEST:
        raise _node_error(node, f"found aliases for more than {LARGEST} values: use fewer")
    sizes[id(node)] = size
    return size


def _check_yaml_scalar(node: yaml.ScalarNode) -> None:
    """Refuse numbers that no setting can have, and text that no page or path can show."""
    if node.tag == INTEGER and len(node.value) > LONGEST_INTEGER:
        raise _node_error(node, f"found a number of {len(node.value)} digits, allowed: 18 digits")
    if node.tag == FLOAT and isinf(float(node.value)):
        raise _node_error(node, f"found {quoted(node.value)}, which is too large for a number")
    for character in node.value:
        if category(character) in NO_TEXT and character not in "\t\n":
            raise _node_error(node, f"found the character U+{ord(character):04X}, which is no text")
    if found := _UNSAFE.search(node.value):
        raise _node_error(node, f"found {found[0]!a}, which no page can show: leave it out")


def _check_yaml_keys(keys: Iterable[yaml.Node]) -> None:
    lines: dict[str, int] = {}
    for key in keys:
        if not isinstance(key, yaml.ScalarNode):
            raise _node_error(key, "found a list or a mapping as a key, allowed: text")
        if key.tag not in (TEXT, MERGE):
            raise _node_error(key, f"found the key {key.value}, allowed: text, so put it in quotes")
        if key.value in lines:
            reason = f"found the key '{key.value}' again, which line {lines[key.value]} has"
            raise _node_error(key, f"{reason}: keep one")
        lines[key.value] = key.start_mark.line + 1


def _node_error(node: yaml.Node, reason: str) -> ConstructorError:
    return ConstructorError(None, None, reason, node.start_mark)


def _explain_yaml_error(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error).splitlines()[0]
    where = error.problem_mark or error.context_mark
    line = f"line {where.line + 1}: " if where else ""
    context = f"{error.context}, " if error.context else ""
    advice = ": indent with spaces" if "'\\t'" in str(error.problem) else ""
    return f"{line}{context}{error.problem}{advice}"
