"""Settings against their JSON schema: the first thing wrong in one sentence, then the defaults."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from vitscope.errors import VitscopeError, listed, nearest, quoted
from vitscope.settings.section import Schema
from vitscope.web import redact

# Each type with its words, and the types of Python that it is. A whole number is an int: in JSON
# schema, 64.0 is one too, but a list of 64.0 images is none.
TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "string": ("text", (str,)),
    "boolean": ("true or false", (bool,)),
    "null": ("null", (type(None),)),
    "array": ("a list", (list,)),
    "object": ("keys and their values", (dict,)),
}


class Rule(NamedTuple):
    """A rule of a schema: the type of values that it is about, its test, and its words."""

    about: str
    holds: Callable[[Any, Any], bool]
    words: Callable[[Any], str]


class Fault(NamedTuple):
    """A value that breaks a rule of its schema, and where it is."""

    path: tuple[object, ...]
    rule: str
    schema: Schema
    found: Any


def check(where: object, settings: object, schema: Schema, within: Sequence[object] = ()) -> None:
    """Refuse settings that do not follow the schema; `within` is the key that holds them."""
    fault = min(find_faults(schema, settings), key=_urgency, default=None)
    if fault:
        raise VitscopeError(f"{where}: {_sentence(fault, [*within, *fault.path])}")


def find_faults(schema: Schema, value: object, path: tuple[object, ...] = ()) -> Iterator[Fault]:
    """Yield what is wrong with a value, and with its keys and entries."""
    for rule, limit in schema.items():
        if rule in RULES:
            about, holds, _ = RULES[rule]
            if _is(about, value) and not holds(limit, value):
                yield Fault(path, rule, schema, value)
        elif rule not in OTHER_RULES:
            raise ValueError(f"There is no rule '{rule}' for settings: {schema}")
    if isinstance(value, list):
        for position, entry in enumerate(value):
            yield from find_faults(schema.get("items", {}), entry, (*path, position))
    if isinstance(value, dict):
        yield from _faults_of_keys(schema, value, path)


def _faults_of_keys(
    schema: Schema, value: dict[str, Any], path: tuple[object, ...]
) -> Iterator[Fault]:
    keys, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    names, kinds = schema.get("propertyNames", {}), schema.get("kinds", {})
    for key, inner in value.items():
        yield from find_faults(names, key, path)
        if key in keys or others:
            yield from find_faults(keys.get(key, others), inner, (*path, key))
        elif others is False:
            yield Fault(path, "additionalProperties", schema, value)
    kind = value.get("kind")
    if isinstance(kind, str) and kind in kinds:
        yield from find_faults(kinds[kind], value, path)


def _holds(schema: Schema, value: object) -> bool:
    return not any(True for _ in find_faults(schema, value))


def _is(type_: str, value: object) -> bool:
    """Tell whether a value is of a type, or `any`; true and false are no numbers."""
    if type_ == "any":
        return True
    return isinstance(value, TYPES[type_][1]) and (
        type_ == "boolean" or not isinstance(value, bool)
    )


def _types(types: str | list[str]) -> list[str]:
    return [types] if isinstance(types, str) else types


def _differ(entries: list[Any]) -> bool:
    """Tell whether no two entries are equal; 1 and 1.0 are."""
    plain = [float(each) if _is("number", each) else repr(each) for each in entries]
    return len({*plain}) == len(plain)


def type_in_words(types: str | list[str]) -> str:
    """Say in words what a schema's `type` allows."""
    return " or ".join(TYPES[each][0] for each in _types(types))


def _count(least: int, one: str, more: str) -> str:
    return f"{least} {one if least == 1 else more}"


RULES: dict[str, Rule] = {
    "type": Rule(
        "any", lambda types, it: any(_is(each, it) for each in _types(types)), type_in_words
    ),
    "enum": Rule("any", lambda all_, it: any(it == v and type(it) is type(v) for v in all_), str),
    "const": Rule("any", lambda value, it: it == value, quoted),
    "minimum": Rule("number", lambda least, it: it >= least, "a number from {} on".format),
    "exclusiveMinimum": Rule("number", lambda bound, it: it > bound, "a number above {}".format),
    "maximum": Rule("number", lambda most, it: it <= most, "a number up to {}".format),
    "exclusiveMaximum": Rule("number", lambda bound, it: it < bound, "a number below {}".format),
    "multipleOf": Rule("number", lambda step, it: it % step == 0, "a multiple of {}".format),
    "minLength": Rule(
        "string", lambda least, it: len(it) >= least, lambda _: "text that is not empty"
    ),
    "maxLength": Rule(
        "string", lambda most, it: len(it) <= most, "text of at most {} characters".format
    ),
    "pattern": Rule(
        "string", lambda text, it: bool(re.search(text, it)), "text that matches {}".format
    ),
    "minItems": Rule(
        "array",
        lambda least, it: len(it) >= least,
        lambda n: f"at least {_count(n, 'entry', 'entries')}",
    ),
    "maxItems": Rule(
        "array",
        lambda most, it: len(it) <= most,
        lambda n: f"at most {_count(n, 'entry', 'entries')}",
    ),
    "uniqueItems": Rule(
        "array", lambda _, it: _differ(it), lambda _: "entries that differ from each other"
    ),
    "minProperties": Rule(
        "object",
        lambda least, it: len(it) >= least,
        lambda n: f"at least {_count(n, 'key', 'keys')}",
    ),
    "required": Rule("object", lambda keys, it: it.keys() >= {*keys}, str),
    "not": Rule("any", lambda schema, it: not _holds(schema, it), str),
    "anyOf": Rule("any", lambda schemas, it: any(_holds(each, it) for each in schemas), str),
    "oneOf": Rule("any", lambda schemas, it: sum(_holds(each, it) for each in schemas) == 1, str),
}
OTHER_RULES = frozenset(
    {"title", "description", "default", "properties", "additionalProperties", "propertyNames"}
    | {"items", "kinds"}
)


def _urgency(fault: Fault) -> tuple[int, bool]:
    """Order faults from the outside in; an unknown key may be why another one is missing."""
    return len(fault.path), fault.rule != "additionalProperties"


def _sentence(fault: Fault, path: Sequence[object]) -> str:
    _, rule, schema, found = fault
    key = ".".join(map(str, path)) or "top level"
    if rule == "additionalProperties":
        allowed = schema.get("properties", {})
        extra = next(name for name in found if name not in allowed)
        key = ".".join(map(str, [*path, extra]))
        return f"{key}: unknown key, allowed: {listed(allowed)}.{nearest(extra, allowed)}"
    if rule == "required":
        missing = next(name for name in schema[rule] if name not in found)
        return f"{key}: the key '{missing}' is missing: add it."
    if rule == "oneOf" and all("required" in each for each in schema[rule]):
        return f"{key}: {_choice(schema[rule], found)}."
    if rule == "enum":
        allowed = [each if isinstance(each, str) else quoted(each) for each in schema[rule]]
        hint = nearest(found, allowed) if isinstance(found, str) else ""
        return f"{key}: found {quoted(found)}, allowed: {', '.join(allowed)}.{hint}"
    if isinstance(found, str) and "://" in found:
        found = redact(found)
    return f"{key}: found {quoted(found)}, allowed: {_expected(rule, schema)}."


def _choice(options: Sequence[Schema], found: Mapping[str, Any]) -> str:
    """Say what was expected where keys exclude each other."""
    keys = [option["required"] for option in options]
    named = list(dict.fromkeys(name for option in keys for name in option))
    given = " and ".join(f"'{name}'" for name in named if name in found)
    allowed = " or ".join(" with ".join(f"'{name}'" for name in option) for option in keys)
    return f"found {given or 'none of these keys'}, allowed: exactly one of {allowed}"


def _expected(rule: str, schema: Schema) -> str:
    if rule in {"const", "pattern", "not", "oneOf", "anyOf"} and "title" in schema:
        # These rules have no words for users; the title does.
        return str(schema["title"])
    return RULES[rule].words(schema[rule])


def fill(settings: Any, schema: Schema) -> None:
    """Put the defaults of the schema where the settings are silent."""
    if not isinstance(settings, dict):
        return
    keys, others = schema.get("properties", {}), schema.get("additionalProperties")
    # Where there are kinds, each has keys of its own.
    of_kind = (
        schema["kinds"][settings["kind"]]["propertyNames"]["enum"] if "kinds" in schema else keys
    )
    for key, inner in keys.items():
        if "default" in inner and key in of_kind:
            settings.setdefault(key, deepcopy(inner["default"]))
        if key in settings:
            fill(settings[key], inner)
    if isinstance(others, dict):
        for key in settings.keys() - keys.keys():
            fill(settings[key], others)
