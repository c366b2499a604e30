from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tests.helpers.refusals import refusal
from vitscope.settings.faults import check_section
from vitscope.settings.section import (
    fill_section,
    optional,
    required,
    result_settings,
    schema_of_section,
    setting,
)


@dataclass(frozen=True, kw_only=True)
class Inner:
    """Within."""

    EITHER = ("one", "other")

    one: str | None = optional("One.")
    other: Literal[True] | None = optional("Other.")


@dataclass(frozen=True, kw_only=True)
class Section:
    """About this,
    and that.
    """

    count: int = required("How many.", minimum=1)
    share: float | None = setting(None, "How much.")
    names: list[str] = setting(["a"], "Which.", result=False, items={"minLength": 1}, minItems=1)
    order: Literal["b", "a"] = setting("a", "Which first.")
    pair: tuple[int, int] = setting([1, 2], "Both.")
    place: str | int = setting(0, "Where.", not_={"const": 1})
    inner: dict[str, Inner] = setting({}, "By name.")
    found: int = 0


KEYS = schema_of_section(Section)["properties"]


def test_a_section_becomes_a_schema() -> None:
    assert {
        key: value for key, value in schema_of_section(Section).items() if key != "properties"
    } == {
        "description": "About this, and that.",
        "type": "object",
        "additionalProperties": False,
        "required": ["count"],
    }
    # A plain field is no key.
    assert [*KEYS] == ["count", "share", "names", "order", "pair", "place", "inner"]
    assert KEYS["count"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert KEYS["share"]["type"] == ["number", "null"]
    assert (KEYS["pair"]["minItems"], KEYS["pair"]["maxItems"]) == (2, 2)
    assert (KEYS["place"]["type"], KEYS["place"]["not"]) == (["string", "integer"], {"const": 1})
    assert KEYS["inner"]["additionalProperties"] == schema_of_section(Inner)
    # Whether a key changes a result is not about its values.
    assert KEYS["names"] == {
        "type": "array",
        "items": {"type": "string", "minLength": 1},
        "minItems": 1,
        "default": ["a"],
        "description": "Which.",
    }


def test_a_result_depends_on_settings_but_for_those_that_change_none() -> None:
    section = Section(count=1, inner={"x": Inner(one="a")}, names=["b"])
    assert result_settings(section) == {
        "count": 1,
        "share": None,
        "order": "a",
        "pair": [1, 2],
        "place": 0,
        "inner": {"x": {"one": "a", "other": None}},
        "found": 0,
    }


def test_keys_may_exclude_each_other() -> None:
    inner: dict[str, Any] = schema_of_section(Inner)
    assert inner["oneOf"] == [{"required": ["one"]}, {"required": ["other"]}]
    assert "required" not in inner
    # What is left out is None, and a file may not say so.
    assert inner["properties"]["one"] == {"type": "string", "description": "One."}
    assert inner["properties"]["other"] == {"enum": [True], "description": "Other."}


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"multipleOf": 8}, 12, ": found 12, allowed: a multiple of 8."),
        ({"const": "a"}, "b", ": found 'b', allowed: 'a'."),
        ({"not": {"const": 1}, "title": "no one"}, 1, ": found 1, allowed: no one."),
        ({"pattern": "^a"}, "b", ": found 'b', allowed: text that matches ^a."),
        ({"additionalProperties": False}, {"b": 1}, ".b: unknown key, allowed: nothing."),
        ({"maxItems": 1}, [1, 2], ": found [1, 2], allowed: at most 1 entry."),
        ({"enum": [18, 34]}, 50, ": found 50, allowed: 18, 34."),
    ],
)
def test_every_rule_of_a_schema_is_reported(
    schema: dict[str, Any], value: object, sentence: str
) -> None:
    assert refusal(check_section, "at", value, schema, within=("x",)) == f"at: x{sentence}"


def test_of_several_faults_the_outermost_is_reported() -> None:
    inner = {"properties": {"b": {"type": "integer"}}}
    schema = {"properties": {"a": inner, "c": {"type": "null"}}}
    said = refusal(check_section, "at", {"a": {"b": "x"}, "c": 1}, schema)
    assert said == "at: c: found 1, allowed: null."


def test_a_rule_that_there_is_not_is_noticed() -> None:
    with pytest.raises(ValueError, match="no rule 'minimun'"):
        check_section("at", 1, {"type": "integer", "minimun": 2})


def test_defaults_reach_into_what_is_named_by_the_user() -> None:
    entry = {"type": "object", "properties": {"k": {"default": [1]}}}
    schema = {"properties": {"all": {"additionalProperties": entry}}}
    settings: dict[str, Any] = {"all": {"one": {}, "two": {"k": 2}}}
    fill_section(settings, schema)
    assert settings == {"all": {"one": {"k": [1]}, "two": {"k": 2}}}
    settings["all"]["one"]["k"].append(2)
    assert entry["properties"]["k"]["default"] == [1]
