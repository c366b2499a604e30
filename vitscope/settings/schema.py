"""Settings against their JSON schema: the first thing wrong in one sentence, then the defaults."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.settings.section import Schema
from vitscope.web.redaction import redacted

TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "keys and their values",
}


def _is_whole(_: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# To JSON schema 64.0 is an integer; a list of 64.0 images is none.
Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_whole),
)


def unknown(where: object, key: str, found: object, allowed: Iterable[str]) -> VitscopeError:
    """Return the error that a value is none of the allowed ones."""
    allowed = list(allowed)
    return VitscopeError(
        f"{where}: {key}: found {quoted(found)}, allowed: {listed(allowed)}."
        f"{nearest(str(found), allowed)}"
    )


def listed(names: Iterable[str]) -> str:
    """Return names in order, for a message."""
    return ", ".join(sorted(names)) or "nothing"


def check(where: object, settings: object, schema: Schema, within: Sequence[object] = ()) -> None:
    """Refuse settings that do not follow the schema; `within` is the key that holds them."""
    error = min(Validator(schema).iter_errors(settings), key=_urgency, default=None)
    if error:
        raise VitscopeError(f"{where}: {_sentence(error, [*within, *error.absolute_path])}")


def _urgency(error: ValidationError) -> tuple[int, bool]:
    """Order errors from the outside in; an unknown key may be why another one is missing."""
    return len(error.absolute_path), error.validator != "additionalProperties"


def _sentence(error: ValidationError, path: Sequence[object]) -> str:
    key = ".".join(map(str, path)) or "top level"
    if error.validator == "additionalProperties":
        allowed = error.schema.get("properties", {})
        extra = next(name for name in error.instance if name not in allowed)
        key = ".".join(map(str, [*path, extra]))
        return f"{key}: unknown key, allowed: {listed(allowed)}.{nearest(extra, allowed)}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"{key}: the key '{missing}' is missing: add it."
    if error.validator == "oneOf" and all("required" in each for each in error.validator_value):
        return f"{key}: {_choice(error)}."
    if error.validator == "enum":
        allowed = [str(value) for value in error.validator_value]
        hint = nearest(error.instance, allowed) if isinstance(error.instance, str) else ""
        return f"{key}: found {quoted(error.instance)}, allowed: {', '.join(allowed)}.{hint}"
    found = error.instance
    if isinstance(found, str) and "://" in found:
        found = redacted(found)
    return f"{key}: found {quoted(found)}, allowed: {_expected(error)}."


def _choice(error: ValidationError) -> str:
    """Say what was expected where keys exclude each other."""
    options = [option["required"] for option in error.validator_value]
    named = list(dict.fromkeys(name for option in options for name in option))
    given = " and ".join(f"'{name}'" for name in named if name in error.instance)
    allowed = " or ".join(" with ".join(f"'{name}'" for name in option) for option in options)
    return f"found {given or 'none of these keys'}, allowed: exactly one of {allowed}"


def type_in_words(types: str | list[str]) -> str:
    """Say in words what a schema's `type` allows."""
    return " or ".join(TYPES[kind] for kind in ([types] if isinstance(types, str) else types))


_EXPECTED: dict[str, Callable[[Any], str]] = {
    "type": type_in_words,
    "minimum": lambda least: f"a number from {least} on",
    "exclusiveMinimum": lambda bound: f"a number above {bound}",
    "maximum": lambda most: f"a number up to {most}",
    "exclusiveMaximum": lambda bound: f"a number below {bound}",
    "minItems": lambda least: f"at least {least} {'entry' if least == 1 else 'entries'}",
    "maxItems": lambda most: f"at most {most} {'entry' if most == 1 else 'entries'}",
    "minProperties": lambda least: f"at least {least} {'key' if least == 1 else 'keys'}",
    "maxLength": lambda most: f"text of at most {most} characters",
    "minLength": lambda _: "text that is not empty",
    "uniqueItems": lambda _: "entries that differ from each other",
    "pattern": lambda pattern: f"text that matches {pattern}",
}


def _expected(error: ValidationError) -> str:
    if error.validator in {"const", "pattern", "not", "oneOf"} and "title" in error.schema:
        # The title of what has no words of its own says it.
        return str(error.schema["title"])
    words = _EXPECTED.get(str(error.validator))
    return words(error.validator_value) if words else f"what fits {_rule(error)}"


def _rule(error: ValidationError) -> str:
    return json.dumps({error.validator: error.validator_value})


def resolved(schema: Schema, root: Schema) -> Schema:
    """Return a part of the schema `root`, its reference followed; what stands beside it wins."""
    if "$ref" not in schema:
        return schema
    target = root
    for part in schema["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return resolved(target, root) | {key: value for key, value in schema.items() if key != "$ref"}


def _keys_of_kind(settings: Mapping[str, Any], schema: Schema) -> Iterable[str]:
    """Return the keys that settings may have; where there are kinds, each has its own."""
    keys: Iterable[str] = schema.get("properties", {})
    for case in schema.get("allOf", ()):
        if settings["kind"] == case["if"]["properties"]["kind"]["const"]:
            keys = case["then"]["propertyNames"]["enum"]
    return keys


def fill(settings: Any, schema: Schema, root: Schema) -> None:
    """Put the defaults of the schema where the settings are silent."""
    schema = resolved(schema, root)
    if not isinstance(settings, dict):
        return
    known = schema.get("properties", {})
    allowed = _keys_of_kind(settings, schema)
    for key, inner in known.items():
        inner = resolved(inner, root)
        if "default" in inner and key in allowed:
            settings.setdefault(key, deepcopy(inner["default"]))
        if key in settings:
            fill(settings[key], inner, root)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for key in settings.keys() - known.keys():
            fill(settings[key], others, root)
