"""Find what breaks the rules of a schema, and say it in words."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vitscope.errors import VitscopeError, listed, nearest, quoted
from vitscope.settings.section import TYPES, Schema, as_list, type_in_words
from vitscope.web import redact


class Rule(NamedTuple):
    """A rule of a schema: the type of values that it applies to, its test, its text in messages."""

    about: str
    holds: Callable[[Any, Any], object]
    words: Callable[[Any], str]


def _has_schema_type(type_: str, value: object) -> bool:
    """Tell if a value has a JSON type: every value has the type `any`; booleans are no numbers."""
    if type_ == "any":
        return True
    return isinstance(value, TYPES[type_][1]) and (
        type_ == "boolean" or not isinstance(value, bool)
    )


def _all_differ(entries: list[Any]) -> bool:
    """Tell whether all entries differ from each other; 1 and 1.0 count as equal."""
    plain = [float(each) if _has_schema_type("number", each) else repr(each) for each in entries]
    return len({*plain}) == len(plain)


def _count_in_words(how: str, one: str, more: str) -> Callable[[int], str]:
    return lambda count: f"{how} {count} {one if count == 1 else more}"


RULES: dict[str, Rule] = {
    "type": Rule(
        "any",
        lambda types, it: any(_has_schema_type(each, it) for each in as_list(types)),
        type_in_words,
    ),
    "enum": Rule("any", lambda all_, it: any(it == v and type(it) is type(v) for v in all_), str),
    "const": Rule("any", lambda value, it: it == value, quoted),
    "minimum": Rule("number", lambda least, it: it >= least, "a number from {} on".format),
    "exclusiveMinimum": Rule("number", lambda bound, it: it > bound, "a number above {}".format),
    "maximum": Rule("number", lambda most, it: it <= most, "a number up to {}".format),
    "exclusiveMaximum": Rule("number", lambda bound, it: it < bound, "a number below {}".format),
    "multipleOf": Rule("number", lambda step, it: it % step == 0, "a multiple of {}".format),
    "minLength": Rule("string", lambda n, it: len(it) >= n, lambda _: "text that is not empty"),
    "maxLength": Rule("string", lambda n, it: len(it) <= n, "text of at most {} characters".format),
    "pattern": Rule("string", re.search, "text that matches {}".format),
    "minItems": Rule(
        "array", lambda n, it: len(it) >= n, _count_in_words("at least", "entry", "entries")
    ),
    "maxItems": Rule(
        "array", lambda n, it: len(it) <= n, _count_in_words("at most", "entry", "entries")
    ),
    "uniqueItems": Rule(
        "array", lambda _, it: _all_differ(it), lambda _: "entries that differ from each other"
    ),
    "minProperties": Rule(
        "object", lambda n, it: len(it) >= n, _count_in_words("at least", "key", "keys")
    ),
    "required": Rule("object", lambda keys, it: it.keys() >= {*keys}, str),
    "not": Rule("any", lambda schema, it: not _follows_schema(schema, it), str),
    "anyOf": Rule(
        "any", lambda schemas, it: any(_follows_schema(each, it) for each in schemas), str
    ),
    "oneOf": Rule(
        "any", lambda schemas, it: sum(_follows_schema(each, it) for each in schemas) == 1, str
    ),
}
OTHER_RULES = {"title", "description", "default", "items", "kinds", "replaced"}
OTHER_RULES |= {"properties", "additionalProperties", "propertyNames"}


class Fault(NamedTuple):
    """A value that breaks a rule of its schema, and where it is."""

    path: tuple[object, ...]
    rule: str
    schema: Schema
    found: Any


def check_section(
    where: object, settings: object, schema: Schema, within: Sequence[object] = ()
) -> None:
    """Refuse settings that do not follow the schema; `within` is the path of their key."""

    def urgency(fault: Fault) -> tuple[int, bool]:
        # Report outer faults first; an unknown key may explain why another key is missing.
        return len(fault.path), fault.rule != "additionalProperties"

    if fault := min(find_faults_of_section(schema, settings), key=urgency, default=None):
        raise VitscopeError(f"{where}: {_fault_of_section_in_words(fault, [*within, *fault.path])}")


def find_faults_of_section(
    schema: Schema, value: object, path: tuple[object, ...] = ()
) -> Iterator[Fault]:
    """Yield the faults of a value, and of its keys and entries."""
    for rule, limit in schema.items():
        if rule in RULES:
            about, holds, _ = RULES[rule]
            if _has_schema_type(about, value) and not holds(limit, value):
                yield Fault(path, rule, schema, value)
        elif rule not in OTHER_RULES:
            raise ValueError(f"There is no rule '{rule}' for settings: {schema}")
    if isinstance(value, list):
        for position, entry in enumerate(value):
            yield from find_faults_of_section(schema.get("items", {}), entry, (*path, position))
    if isinstance(value, dict):
        yield from _faults_of_section_keys(schema, value, path)


def _faults_of_section_keys(
    schema: Schema, value: dict[str, Any], path: tuple[object, ...]
) -> Iterator[Fault]:
    keys, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for key, inner in value.items():
        yield from find_faults_of_section(schema.get("propertyNames", {}), key, path)
        if key in keys or others:
            yield from find_faults_of_section(keys.get(key, others), inner, (*path, key))
        elif others is False:
            yield Fault(path, "additionalProperties", schema, value)
    kind, kinds = value.get("kind"), schema.get("kinds", {})
    if isinstance(kind, str) and kind in kinds:
        yield from find_faults_of_section(kinds[kind], value, path)


def _follows_schema(schema: Schema, value: object) -> bool:
    return next(find_faults_of_section(schema, value), None) is None


def _fault_of_section_in_words(fault: Fault, path: Sequence[object]) -> str:
    _, rule, schema, found = fault
    key = ".".join(map(str, path)) or "top level"
    if rule == "additionalProperties":
        allowed = schema.get("properties", {})
        extra = next(name for name in found if name not in allowed)
        key = ".".join(map(str, [*path, extra]))
        if extra in schema.get("replaced", {}):
            return f"{key}: this key of earlier versions is replaced: {schema['replaced'][extra]}."
        return f"{key}: unknown key, allowed: {listed(allowed)}.{nearest(extra, allowed)}"
    if rule == "required":
        missing = next(name for name in schema[rule] if name not in found)
        return f"{key}: the key '{missing}' is missing: add it."
    if rule == "oneOf" and all("required" in each for each in schema[rule]):
        return f"{key}: {_choice_of_section_in_words(schema[rule], found)}."
    if rule == "enum":
        allowed = [each if isinstance(each, str) else quoted(each) for each in schema[rule]]
        hint = nearest(found, allowed) if isinstance(found, str) else ""
        return f"{key}: found {quoted(found)}, allowed: {', '.join(allowed)}.{hint}"
    if isinstance(found, str) and "://" in found:
        found = redact(found)
    # The texts of these rules tell users nothing, so use the title.
    titled = rule in {"const", "pattern", "not", "oneOf", "anyOf"} and "title" in schema
    expected = schema["title"] if titled else RULES[rule].words(schema[rule])
    return f"{key}: found {quoted(found)}, allowed: {expected}."


def _choice_of_section_in_words(options: Sequence[Schema], found: Mapping[str, Any]) -> str:
    keys = [option["required"] for option in options]
    named = list(dict.fromkeys(name for option in keys for name in option))
    given = " and ".join(f"'{name}'" for name in named if name in found)
    allowed = " or ".join(" with ".join(f"'{name}'" for name in option) for option in keys)
    return f"found {given or 'none of these keys'}, allowed: exactly one of {allowed}"
