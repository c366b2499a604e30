"""A dataclass whose fields are keys becomes a JSON schema."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from vitscope.settings.section import Schema, optional, required, schema_of, setting


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
    names: list[str] = setting(["a"], "Which.", items={"minLength": 1}, minItems=1)
    order: Literal["b", "a"] = setting("a", "Which first.")
    pair: tuple[int, int] = setting([1, 2], "Both.")
    place: str | int = setting(0, "Where.", not_={"const": 1})
    inner: dict[str, Inner] = setting({}, "By name.")
    found: int = 0


KEYS = schema_of(Section)["properties"]


def test_a_section_becomes_a_schema() -> None:
    assert {key: value for key, value in schema_of(Section).items() if key != "properties"} == {
        "description": "About this, and that.",
        "type": "object",
        "additionalProperties": False,
        "required": ["count"],
    }
    # A field without a sentence is no key.
    assert [*KEYS] == ["count", "share", "names", "order", "pair", "place", "inner"]


@pytest.mark.parametrize(
    ("key", "schema"),
    [
        ("count", {"type": "integer", "minimum": 1, "description": "How many."}),
        ("share", {"type": ["number", "null"], "default": None, "description": "How much."}),
        (
            "names",
            {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "default": ["a"],
                "description": "Which.",
            },
        ),
        ("order", {"enum": ["b", "a"], "default": "a", "description": "Which first."}),
        (
            "pair",
            {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
                "default": [1, 2],
                "description": "Both.",
            },
        ),
        (
            "place",
            {
                "type": ["string", "integer"],
                "not": {"const": 1},
                "default": 0,
                "description": "Where.",
            },
        ),
        (
            "inner",
            {
                "type": "object",
                "additionalProperties": schema_of(Inner),
                "default": {},
                "description": "By name.",
            },
        ),
    ],
)
def test_a_key_becomes_a_schema(key: str, schema: Schema) -> None:
    assert KEYS[key] == schema


def test_keys_may_exclude_each_other() -> None:
    inner: dict[str, Any] = schema_of(Inner)
    assert inner["oneOf"] == [{"required": ["one"]}, {"required": ["other"]}]
    assert "required" not in inner
    # What is left out is None, and a file may not say so.
    assert inner["properties"]["one"] == {"type": "string", "description": "One."}
    assert inner["properties"]["other"] == {"enum": [True], "description": "Other."}
