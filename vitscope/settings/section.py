"""Declare settings as dataclasses, whose JSON schemas check settings and fill in defaults."""

from copy import deepcopy
from dataclasses import MISSING, Field, asdict, field, fields, is_dataclass
from functools import cache, partial, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

# For each JSON type, its name in messages and its Python types. A whole number must be an int: JSON
# schema also accepts 64.0, but a list cannot have 64.0 images.
TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "string": ("text", (str,)),
    "boolean": ("true or false", (bool,)),
    "null": ("null", (NoneType,)),
    "array": ("a list", (list,)),
    "object": ("keys and their values", (dict,)),
}
NAMES = {types[-1]: name for name, (_, types) in TYPES.items()}


def setting(default: object, meaning: str = "", *, result: bool = True, **rules: object) -> Any:
    """Declare a key with a default, a meaning, and further rules of its JSON schema.

    Rules under `items` hold for every entry of a list; `not_` stands for `not`. If `result` is
    false, no result depends on the key: `result_settings` leaves it out.
    """
    metadata = _metadata_of_key(meaning, rules) | {"result": result}
    return field(default_factory=partial(deepcopy, default), metadata=metadata)


def required(meaning: str = "", **rules: object) -> Any:
    """Declare a key that must be given."""
    return field(metadata=_metadata_of_key(meaning, rules))


def optional(meaning: str = "", **rules: object) -> Any:
    """Declare a key that may be left out and is then None; null in a file is refused."""
    return field(default=None, metadata=_metadata_of_key(meaning, rules))


def _metadata_of_key(meaning: str, rules: dict[str, object]) -> dict[str, Any]:
    schema = {name.removesuffix("_"): rule for name, rule in rules.items()}
    return {"schema": schema | ({"description": meaning} if meaning else {})}


def result_settings(settings: Any) -> dict[str, Any]:
    """Return the settings that a result depends on, as plain values."""
    changing = [each.name for each in fields(settings) if each.metadata.get("result", True)]
    return {key: value for key, value in asdict(settings).items() if key in changing}


@cache
def schema_of_section(section: type) -> Schema:
    """Return the JSON schema of a dataclass; a file must give exactly one key of its `EITHER`.

    Its `REPLACED` maps keys of earlier versions to what to write in their place.
    """
    types = get_type_hints(section)
    keys = [each for each in fields(section) if each.metadata]
    needed = [key.name for key in keys if key.default is key.default_factory is MISSING]
    either = [{"required": [key]} for key in getattr(section, "EITHER", ())]
    return {
        "description": " ".join((section.__doc__ or "").split()),
        "type": "object",
        "additionalProperties": False,
        **({"replaced": section.REPLACED} if hasattr(section, "REPLACED") else {}),
        **({"required": needed} if needed else {}),
        **({"oneOf": either} if either else {}),
        "properties": {key.name: _schema_of_section_key(key, types[key.name]) for key in keys},
    }


def _schema_of_section_key(key: Field[Any], type_: Any) -> Schema:
    if key.default is None and get_origin(type_) in (Union, UnionType):
        # An optional key is left out rather than null.
        type_ = reduce(or_, (each for each in get_args(type_) if each is not NoneType))
    default: Schema = {} if key.default_factory is MISSING else {"default": key.default_factory()}
    said: Schema = key.metadata["schema"]
    schema = _schema_of_type(type_) | default | said
    if "items" in said:
        schema["items"] = _schema_of_type(type_)["items"] | said["items"]
    return schema


def _schema_of_type(type_: Any) -> Schema:
    origin, inner = get_origin(type_), get_args(type_)
    if is_dataclass(type_) and isinstance(type_, type):
        return schema_of_section(type_)
    if origin is Literal:
        return {"enum": [*inner]}
    if origin is list:
        return {"type": "array", "items": _schema_of_type(inner[0])}
    if origin is tuple:
        length = {} if inner[1] is ... else {"minItems": len(inner), "maxItems": len(inner)}
        return {"type": "array", "items": _schema_of_type(inner[0]), **length}
    if origin is dict:
        others: Schema = (
            {} if inner[1] is Any else {"additionalProperties": _schema_of_type(inner[1])}
        )
        return {"type": "object"} | others
    if origin in (Union, UnionType):
        schemas = [_schema_of_type(each) for each in inner]
        kinds = [schema["type"] for schema in schemas]
        return {rule: each[rule] for each in schemas for rule in each} | {"type": kinds}
    return {"type": NAMES[type_]}


def as_list(types: str | list[str]) -> list[str]:
    return [types] if isinstance(types, str) else types


def type_in_words(types: str | list[str]) -> str:
    return " or ".join(TYPES[each][0] for each in as_list(types))


def fill_section(settings: Any, schema: Schema) -> None:
    """Fill in the schema's defaults for keys that the settings leave out."""
    if not isinstance(settings, dict):
        return
    keys, others = schema.get("properties", {}), schema.get("additionalProperties")
    # Each kind has keys of its own.
    kind = schema["kinds"][settings["kind"]] if "kinds" in schema else None
    for key, inner in keys.items():
        if "default" in inner and (kind is None or key in kind["propertyNames"]["enum"]):
            settings.setdefault(key, deepcopy(inner["default"]))
        if key in settings:
            fill_section(settings[key], inner)
    if isinstance(others, dict):
        for key in settings.keys() - keys.keys():
            fill_section(settings[key], others)
