"""The tables of the manual, written from the schemas and the code that they are about.

`python -m vitscope.manual` writes each between its markers, in config/README.md and docs/tables.md.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from vitscope.drawing import captions
from vitscope.files.whole import atomic_path
from vitscope.networks import families
from vitscope.settings.schema import Schema, load, resolved, type_in_words
from vitscope.workflow.tables import find_table

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "config" / "README.md",
    *(ROOT / "docs" / f"{page}.md" for page in ("figures", "tables")),
)
GENERATED = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
# How a schema's bounds read behind its type.
BOUNDS = {
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "up to {}",
    "exclusiveMaximum": "below {}",
}


class Setting(NamedTuple):
    """One key of a settings file."""

    key: str
    value: str
    default: str
    description: str


def page(text: str) -> str:
    """Return a page with its generated parts as they should be."""
    return GENERATED.sub(lambda found: f"{found[1]}{_part(found[2])}{found[3]}", text)


def _part(name: str) -> str:
    kind, _, what = name.partition(" ")
    if kind == "captions":
        return captions.manual()
    if kind == "table":
        columns = (
            (f"`{key}`", str(type_), text)
            for key, (type_, text) in find_table(what).columns.items()
        )
        return _table(("column", "type", "meaning"), columns)
    if kind == "arch":
        schema = families.arch_schema(what)
        return _settings(_within(schema, schema, "")) + _choice(schema)
    schema = load(kind)
    if not what:
        # The sections of a study have tables of their own.
        return _settings(_within(schema, schema, "", deep=kind != "study"))
    return _settings(_inside(schema["properties"][what], schema, ""))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [head, ("---" for _ in head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _settings(settings: Iterable[Setting]) -> str:
    return _table(("key", "value", "default", "meaning"), settings)


def _choice(schema: Schema) -> str:
    """Say which keys exclude each other."""
    if "oneOf" not in schema:
        return ""
    options = (" with ".join(f"`{key}`" for key in each["required"]) for each in schema["oneOf"])
    return f"\nExactly one of: {'; '.join(options)}.\n"


def _within(schema: Schema, root: Schema, prefix: str, deep: bool = True) -> Iterator[Setting]:
    """List the keys of an object, and of the objects in it."""
    for key, inner in schema.get("properties", {}).items():
        inner = resolved(inner, root)
        default = json.dumps(inner["default"]) if "default" in inner else ""
        yield Setting(
            f"`{prefix}{key}`",
            _value(inner, root),
            "required" if key in schema.get("required", ()) else default and f"`{default}`",
            inner.get("description", "").strip(),
        )
        if deep:
            yield from _inside(inner, root, f"{prefix}{key}.")


def _inside(schema: Schema, root: Schema, prefix: str) -> Iterator[Setting]:
    """List the keys within a value, under NAME where the user gives the names."""
    schema = resolved(schema, root)
    yield from _within(schema, root, prefix)
    named = schema.get("additionalProperties")
    if isinstance(named, dict) and "properties" in resolved(named, root):
        yield from _within(resolved(named, root), root, f"{prefix}NAME.")


def _value(schema: Schema, root: Schema) -> str:
    """Say in words what a schema allows."""
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value).strip(chr(34))}`" for value in schema["enum"])
    if "title" in schema:
        return str(schema["title"])
    words = type_in_words(schema["type"])
    if "items" in schema:
        length = f" of {schema['maxItems']}" if "maxItems" in schema else ""
        words += f"{length}, each {_value(resolved(schema['items'], root), root)}"
    bounds = [words.format(schema[key]) for key, words in BOUNDS.items() if key in schema]
    return ", ".join([words, *bounds])


def write() -> None:
    """Bring the generated parts of all pages up to date."""
    for path in PAGES:
        text = page(path.read_text(encoding="utf-8"))
        with atomic_path(path) as partial:
            partial.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
