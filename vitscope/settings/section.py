"""Settings that a measure declares: a dataclass, and the JSON schema that is made from it.

Every key is said once: its name and its type, its default, what it means, and what it allows.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import Field, field, fields
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


def setting(default: object, meaning: str, **rules: object) -> Any:
    """Return a field of a section: its default, a sentence, and what JSON schema says besides.

    Rules of `items` are those of every entry of a list; `not_` stands for `not`.
    """
    copied: Callable[[], object] = partial(deepcopy, default)
    said = {name.removesuffix("_"): rule for name, rule in rules.items()}
    return field(default_factory=copied, metadata=said | {"description": meaning})


def schema_of(section: type) -> Schema:
    """Return the JSON schema of a section, whose docstring says what it is about."""
    types = get_type_hints(section)
    return {
        "description": section.__doc__,
        "type": "object",
        "additionalProperties": False,
        "default": {},
        "properties": {each.name: _key(each, types[each.name]) for each in fields(section)},
    }


def _key(key: Field[Any], type_: Any) -> Schema:
    assert callable(key.default_factory), f"{key.name} is no setting"
    schema = _type(type_) | {"default": key.default_factory()} | key.metadata
    if "items" in key.metadata:
        schema["items"] = _type(type_)["items"] | key.metadata["items"]
    return schema


def _type(type_: Any) -> Schema:
    origin, inner = get_origin(type_), get_args(type_)
    if origin is Literal:
        return {"enum": [*inner]}
    if origin is list:
        return {"type": "array", "items": _type(inner[0])}
    if origin in (Union, UnionType):
        schemas = [_type(each) for each in inner]
        items = [schema["items"] for schema in schemas if "items" in schema]
        types: Schema = {"type": [schema["type"] for schema in schemas]}
        return types | ({"items": items[0]} if items else {})
    return {"type": TYPES[type_]}
