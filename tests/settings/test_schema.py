"""Settings against schemas of any kind: families bring their own."""

from typing import Any

import pytest

from vitscope.errors import VitscopeError
from vitscope.settings.section import check, fill


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"multipleOf": 8}, 12, "at: x: found 12, allowed: a multiple of 8."),
        ({"const": "a"}, "b", "at: x: found 'b', allowed: 'a'."),
        ({"not": {"const": 1}, "title": "no one"}, 1, "at: x: found 1, allowed: no one."),
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


def test_a_rule_that_there_is_not_is_noticed() -> None:
    with pytest.raises(ValueError, match="no rule 'minimun'"):
        check("at", 1, {"type": "integer", "minimun": 2})


def test_defaults_reach_into_what_is_named_by_the_user() -> None:
    entry = {"type": "object", "properties": {"k": {"default": [1]}}}
    schema = {"properties": {"all": {"additionalProperties": entry}}}
    settings: dict[str, Any] = {"all": {"one": {}, "two": {"k": 2}}}
    fill(settings, schema)
    assert settings == {"all": {"one": {"k": [1]}, "two": {"k": 2}}}
    settings["all"]["one"]["k"].append(2)
    assert entry["properties"]["k"]["default"] == [1]
