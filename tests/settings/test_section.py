"""A dataclass whose fields are keys becomes a JSON schema."""

from dataclasses import dataclass
from typing import Any, Literal

from vitscope.settings.section import optional, required, schema_of, setting


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
    assert KEYS["count"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert KEYS["share"]["type"] == ["number", "null"]
    assert KEYS["names"]["items"] == {"type": "string", "minLength": 1}
    assert (KEYS["pair"]["minItems"], KEYS["pair"]["maxItems"]) == (2, 2)
    assert (KEYS["place"]["type"], KEYS["place"]["not"]) == (["string", "integer"], {"const": 1})
    assert KEYS["inner"]["additionalProperties"] == schema_of(Inner)


def test_keys_may_exclude_each_other() -> None:
    inner: dict[str, Any] = schema_of(Inner)
    assert inner["oneOf"] == [{"required": ["one"]}, {"required": ["other"]}]
    assert "required" not in inner
    # What is left out is None, and a file may not say so.
    assert inner["properties"]["one"] == {"type": "string", "description": "One."}
    assert inner["properties"]["other"] == {"enum": [True], "description": "Other."}
