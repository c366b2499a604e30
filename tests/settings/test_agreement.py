"""The typed study and the schema of a study: the same keys, of the same types."""

from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from vitscope.measures import registry
from vitscope.settings.loading import study_schema
from vitscope.settings.schema import Validator, resolved
from vitscope.settings.section import Schema, schema_of, setting
from vitscope.settings.study import (
    Analysis,
    Dataset,
    Figure,
    Model,
    Recipe,
    Selection,
    Study,
)

SCHEMA = study_schema()
MEASURES = [registry.declared(name) for name in registry.names()]
SETTINGS = {measure.name: measure.settings for measure in MEASURES if measure.settings}
PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}
# The study says these of itself, of a model what its data set says or its name, and at which epoch
# it is shown, or of a figure the models of its pairs.
OF_THE_STUDY = {"name", "path", "sections", "settings"}
NEVER_GIVEN = {"epoch"}
DERIVED = {"label", "classes", "mean", "std", "models"}


def part(*keys: str) -> Schema:
    """Return a part of the schema of a study."""
    schema = SCHEMA
    for key in keys:
        schema = schema[key]
    return resolved(schema, SCHEMA)


def disagreement(type_: Any, schema: Schema, at: str) -> list[str]:
    """List where values that a schema allows are not of a type, or the other way round."""
    schema = resolved(schema, SCHEMA)
    origin, inner = get_origin(type_), get_args(type_)
    if is_dataclass(type_) and schema["type"] == "object":
        return differing_keys(type_, schema, at)
    allowed = schema.get("type", [])
    deep = {"object", "array"} & {*([allowed] if isinstance(allowed, str) else allowed)}
    if origin in (Union, UnionType) and deep:
        # What a file may leave out is None then; text names a file that is read.
        (given,) = set(inner) - {NoneType}
        return disagreement(given, schema | {"type": deep.pop()}, at)
    if origin is Literal:
        return [] if list(inner) == schema.get("enum") else [f"{at}: {inner}"]
    if origin is list:
        same = schema.get("type") == "array"
        return disagreement(inner[0], schema["items"], at) if same else [at]
    if origin is tuple:
        fixed = schema.get("minItems") == schema.get("maxItems") == len(inner)
        same = schema.get("type") == "array" and (inner[1] is ... or fixed)
        return disagreement(inner[0], schema["items"], at) if same else [at]
    if origin is dict:
        same = schema.get("type") == "object" and inner[0] is str
        values = schema.get("additionalProperties")
        if inner[1] is str and "properties" in schema:
            texts = [resolved(each, SCHEMA)["type"] for each in schema["properties"].values()]
            return [] if same and {*texts} == {"string"} else [at]
        faults = disagreement(inner[1], values, at) if isinstance(values, dict) else []
        return faults if same else [at]
    named = [PLAIN[each] for each in (inner if origin in (Union, UnionType) else (type_,))]
    return (
        [] if named == ([allowed] if isinstance(allowed, str) else allowed) else [f"{at}: {named}"]
    )


def differing_keys(type_: type, schema: Schema, at: str) -> list[str]:
    """List the keys that only a dataclass or only a schema has, and those of another type."""
    types, keys = get_type_hints(type_), schema["properties"]
    own = {each.name: each for each in fields(type_) if each.name not in NEVER_GIVEN}
    found = [f"{at}.{key}: only one has it" for key in own.keys() ^ keys.keys()]
    for key in own.keys() & keys.keys():
        inner = resolved(keys[key], SCHEMA)
        found += disagreement(types[key], inner, f"{at}.{key}")
        has = own[key].default is not MISSING or own[key].default_factory is not MISSING
        always = key in schema.get("required", ()) or "default" in inner or key in DERIVED
        # A value that a file may leave out needs one here, and no other does.
        if not has and not always:
            found.append(f"{at}.{key}: left out of a file, it has no value")
    return found


def test_the_study_and_its_schema_agree() -> None:
    top = SCHEMA | {"type": "object"}
    keys = {each.name for each in fields(Study)} - OF_THE_STUDY
    assert keys == SCHEMA["properties"].keys()
    assert differing_keys(Dataset, part("$defs", "dataset"), "data") == []
    assert differing_keys(Model, part("$defs", "model"), "models") == []
    assert differing_keys(Figure, part("$defs", "figure"), "figures") == []
    assert differing_keys(Recipe, part("$defs", "training"), "training") == []
    analysis = part("$defs", "analysis")
    own = {key: each for key, each in analysis["properties"].items() if key not in SETTINGS}
    assert differing_keys(Analysis, analysis | {"properties": own}, "analysis") == []
    types = get_type_hints(Study)
    for key in ("title", "description", "device"):
        assert disagreement(types[key], top["properties"][key], key) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_a_measure_and_its_section_agree(name: str) -> None:
    section = part("$defs", "analysis", "properties", name)
    assert differing_keys(SETTINGS[name], section, name) == []


@pytest.mark.parametrize("name", SETTINGS)
def test_the_defaults_of_a_measure_follow_its_schema_and_its_types(name: str) -> None:
    kind, section = SETTINGS[name], part("$defs", "analysis", "properties", name)
    Validator.check_schema(section)
    defaults = {key: schema["default"] for key, schema in section["properties"].items()}
    assert not list(Validator(section).iter_errors(defaults))
    assert msgspec.convert(defaults, kind) == kind() == msgspec.convert({}, kind)


def test_every_key_of_a_measure_is_explained() -> None:
    for name in SETTINGS:
        section = part("$defs", "analysis", "properties", name)
        for key, schema in section["properties"].items():
            assert schema["description"].endswith("."), f"{name}.{key}"
        assert section["description"].endswith("."), name


def test_a_disagreement_is_noticed() -> None:
    schema = part("$defs", "dataset", "properties", "splits", "additionalProperties")
    assert differing_keys(Selection, schema, "splits") == []
    without = {key: each for key, each in schema["properties"].items() if key != "seed"}
    assert differing_keys(Selection, schema | {"properties": without}, "splits") == [
        "splits.seed: only one has it"
    ]
    other = schema["properties"] | {"images": {"type": "integer", "default": 1}}
    assert differing_keys(Selection, schema | {"properties": other}, "splits") == [
        "splits.images: ['integer', 'null']"
    ]
    silent = schema["properties"] | {"seed": {"type": ["integer", "null"]}}
    assert differing_keys(Selection, schema | {"properties": silent}, "splits") == [
        "splits.seed: left out of a file, it has no value"
    ]


def test_a_section_becomes_a_schema() -> None:
    def of(type_: Any, *arguments: Any, **rules: Any) -> Schema:
        body = {"__annotations__": {"key": type_}, "key": setting(*arguments, **rules)}
        kind = dataclass(frozen=True)(type("Section", (), body | {"__doc__": "About."}))
        schema = schema_of(kind)
        assert schema.pop("description") == "About."
        key: Schema = schema.pop("properties")["key"]
        assert schema == {"type": "object", "additionalProperties": False, "default": {}}
        return key

    assert of(int, 3, "Of it.", minimum=1) == {
        "type": "integer",
        "default": 3,
        "description": "Of it.",
        "minimum": 1,
    }
    assert of(int | None, None, "It.")["type"] == ["integer", "null"]
    assert of(Literal["b", "a"], "a", "It.") == {
        "enum": ["b", "a"],
        "default": "a",
        "description": "It.",
    }
    listed = of(list[float], [0.5], "It.", items={"minimum": 0}, minItems=1)
    assert listed["items"] == {"type": "number", "minimum": 0}
    assert listed["minItems"] == 1
    assert of(int, 3, "It.", not_={"multipleOf": 2})["not"] == {"multipleOf": 2}
