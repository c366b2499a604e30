"""Settings against schemas of any kind: families bring their own."""

from typing import Any

import pytest

from vitscope.errors import VitscopeError
from vitscope.settings.schema import check, fill, resolved


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"multipleOf": 8}, 12, 'at: x: found 12, allowed: what fits {"multipleOf": 8}.'),
        ({"const": "a"}, "b", 'at: x: found \'b\', allowed: what fits {"const": "a"}.'),
        (
            {"oneOf": [{"type": "string"}, {"type": "null"}]},
            1,
            'at: x: found 1, allowed: what fits {"oneOf": [{"type": "string"}, {"type": "null"}]}.',
        ),
        ({"pattern": "^a"}, "b", "at: x: found 'b', allowed: text that matches ^a."),
        ({"additionalProperties": False}, {"b": 1}, "at: x.b: unknown key, allowed: nothing."),
        ({"maxItems": 1}, [1, 2], "at: x: found [1, 2], allowed: at most 1 entry."),
        ({"enum": [18, 34]}, 50, "at: x: found 50, allowed: 18, 34."),
    ],
)
def test_every_rule_of_a_schema_is_reported(
    schema: dict[str, Any], value: object, sentence: str
) -> None:
    with pytest.raises(VitscopeError) as caught:
        check("at", value, schema, within=("x",))
    assert str(caught.value) == sentence


def test_of_several_faults_the_outermost_is_reported() -> None:
    schema = {
        "properties": {"a": {"properties": {"b": {"type": "integer"}}}, "c": {"type": "null"}}
    }
    with pytest.raises(VitscopeError, match=r"^at: c: found 1, allowed: null\.$"):
        check("at", {"a": {"b": "x"}, "c": 1}, schema)


def test_a_reference_takes_what_stands_beside_it() -> None:
    root = {"$defs": {"name": {"type": "string", "description": "old"}}}
    part = {"$ref": "#/$defs/name", "description": "new"}
    assert resolved(part, root) == {"type": "string", "description": "new"}


def test_defaults_reach_into_what_is_named_by_the_user() -> None:
    entry = {"type": "object", "properties": {"k": {"default": [1]}}}
    schema = {"properties": {"all": {"additionalProperties": entry}}}
    settings: dict[str, Any] = {"all": {"one": {}, "two": {"k": 2}}}
    fill(settings, schema, schema)
    assert settings == {"all": {"one": {"k": [1]}, "two": {"k": 2}}}
    settings["all"]["one"]["k"].append(2)
    assert entry["properties"]["k"]["default"] == [1]
