"""Settings that are declared as dataclasses, and the JSON schemas that are made from these.

Every key is said once: its name and its type, its default, what it means, and what it allows.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import cache, partial, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


def setting(default: object, meaning: str = "", **rules: object) -> Any:
    """Return a key with a default, a sentence, and what its JSON schema says besides.

    That may be the schema of a dataclass, with the docstring as the sentence. Rules of `items` are
    rules of every entry of a list; `not_` stands for `not`.
    """
    copied: Callable[[], object] = partial(deepcopy, default)
    return field(default_factory=copied, metadata=_schema(meaning, rules))


def required(meaning: str = "", **rules: object) -> Any:
    """Return a key that has to be there."""
    return field(metadata=_schema(meaning, rules))


def optional(meaning: str = "", **rules: object) -> Any:
    """Return a key without a default: where a file leaves it out, it is None, and may not be so."""
    return field(default=None, metadata=_schema(meaning, rules))


def _schema(meaning: str, rules: dict[str, object]) -> Schema:
    schema = {name.removesuffix("_"): rule for name, rule in rules.items()}
    return schema | ({"description": meaning} if meaning else {})


@cache
def schema_of(section: type) -> Schema:
    """Return the JSON schema of a dataclass, whose docstring says what it is about.

    Its fields without a sentence are no keys of a file. Of the keys `EITHER`, exactly one is given.
    """
    types = get_type_hints(section)
    keys = [each for each in fields(section) if each.metadata]
    needed = [key.name for key in keys if key.default is key.default_factory is MISSING]
    either = [{"required": [key]} for key in getattr(section, "EITHER", ())]
    return {
        "description": " ".join((section.__doc__ or "").split()),
        "type": "object",
        "additionalProperties": False,
        **({"required": needed} if needed else {}),
        **({"oneOf": either} if either else {}),
        "properties": {key.name: _key(key, types[key.name]) for key in keys},
    }


def _key(key: Field[Any], type_: Any) -> Schema:
    if key.default is None:
        type_ = _given(type_)
    default = {} if key.default_factory is MISSING else {"default": key.default_factory()}
    schema = _type(type_) | default | key.metadata
    if "items" in key.metadata:
        schema["items"] = _type(type_)["items"] | key.metadata["items"]
    return schema


def _given(type_: Any) -> Any:
    """Return the type of an optional key where it is given."""
    if get_origin(type_) in (Union, UnionType):
        return reduce(or_, (each for each in get_args(type_) if each is not NoneType))
    return type_


def _type(type_: Any) -> Schema:
    origin, inner = get_origin(type_), get_args(type_)
    if is_dataclass(type_) and isinstance(type_, type):
        return schema_of(type_)
    if origin is Literal:
        return {"enum": [*inner]}
    if origin is list:
        return {"type": "array", "items": _type(inner[0])}
    if origin is tuple:
        length = {} if inner[1] is ... else {"minItems": len(inner), "maxItems": len(inner)}
        return {"type": "array", "items": _type(inner[0]), **length}
    if origin is dict:
        return {"type": "object"} | (
            {} if inner[1] is Any else {"additionalProperties": _type(inner[1])}
        )
    if origin in (Union, UnionType):
        schemas = [_type(each) for each in inner]
        kinds = [schema["type"] for schema in schemas]
        return {rule: each[rule] for each in schemas for rule in each} | {"type": kinds}
    return {"type": TYPES[type_]}
