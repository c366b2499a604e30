"""Read what the file of a user's own measure declares, without running the file.

The file must define a function `measure(maps)`, which returns one number for each image; everything
else has a default. It may also define `MEASURE` and `TABLE` as plain values, `merge`, `plot` and
`CLAIMS`, with the meaning that these names have in measures of vitscope.
"""

import ast
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from vitscope.errors import VitscopeError, quoted
from vitscope.files.pages import as_rst
from vitscope.files.tables import Columns, Table
from vitscope.measures import registry
from vitscope.measures.columns import mean_columns, per_image_columns
from vitscope.measures.folders import place_in_folder
from vitscope.measures.measure import (
    ByDepth,
    FigureKind,
    Measure,
    Merge,
    bootstrap,
    mean_over_images,
)
from vitscope.networks.building.own_code import (
    OwnCode,
    digest_of_own_code,
    locate_user_code,
    shown,
)

# The fields that `MEASURE` may set; others are for measures in vitscope itself.
FIELDS = ("needs", "reads_attention", "about_features", "seconds_per_gb")
# The estimate for plans, if `MEASURE` does not set `seconds_per_gb`.
SECONDS_PER_GB = 2.0


def declare_own(name: str, entry: Mapping[str, Any], folder: Path, where: str) -> Measure:
    """Read the file of a user's measure without running it; `where` names its entry in errors."""
    if name in {*registry.names(), *registry.kinds(), *registry.TAKEN}:
        raise VitscopeError(
            f"{where}: vitscope has a measure, a kind of figure or a folder of the name "
            f"{quoted(name)}: choose another name."
        )
    code = locate_user_code({"file": entry["file"]}, folder, where)
    digest = digest_of_own_code(code, where)
    keywords = entry.get("keywords", {})
    defined = _OwnMeasureFile(code, where)
    runs = {"file": str(folder / entry["file"]), "module": code.module, "code": digest}
    measure = defined.measure(name)
    merge = mean_over_images("value") if measure.in_parts else Merge()
    if "merge" in defined.names:
        merge = Merge("compute:merge", lambda case: runs | bootstrap(case), True)
    kind = FigureKind("show:plot", text=defined.caption(name), values=runs)
    if "plot" not in defined.names:
        values = {"label": _label_from_name(name)}
        kind = replace(kind, draw="show:plot_by_depth", values=values, options=ByDepth)
    if "CLAIMS" in defined.names:
        given = {"runs": runs, "table": name}
        kind = replace(kind, claims="compute:read_claims", claims_from=given)
    if "TABLE" in defined.names and "plot" not in defined.names:
        raise VitscopeError(
            f"{where}: {shown(code.file)} has a `TABLE` and no function `plot` that draws it: add "
            f"`plot(table, members)`."
        )
    own = replace(
        measure,
        measure="compute:measure",
        figures={name: kind},
        arguments=lambda _: {**runs, "keywords": keywords},
        merge=merge,
    )
    return place_in_folder(own, "vitscope.measures.own")


def _label_from_name(name: str) -> str:
    return name.replace("_", " ").capitalize()


class _OwnMeasureFile:
    """Holds the functions and constants that a file defines at its top level, from its source."""

    def __init__(self, code: OwnCode, where: str) -> None:
        self._file, self._where = shown(code.file), where
        tree = ast.parse(code.file.read_bytes())
        self._docstring = ast.get_docstring(tree) or ""
        self._values: dict[str, ast.expr] = {}
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        for node in tree.body:
            if isinstance(node, ast.Assign):
                self._values |= {t.id: node.value for t in node.targets if isinstance(t, ast.Name)}
        self.names = {*functions, *self._values}

    def caption(self, name: str) -> str:
        """Turn the docstring, plain text, into a caption; its first sentence is the title."""
        text = self._docstring or f"{_label_from_name(name)} by depth."
        summary, _, rest = text.partition("\n\n")
        title, _, more = " ".join(summary.split()).partition(". ")
        first = f"**{as_rst(title.rstrip('.'))}.** {as_rst(more)}".rstrip()
        return "\n\n".join(filter(None, (first, as_rst(rest))))

    def measure(self, name: str) -> Measure:
        """Build the measure that `MEASURE` describes; without it, a measure of latents."""
        said = self._fields_of_measure()
        needs = said.pop("needs", "latents")
        if needs not in ("latents", "model", "predictions", "network"):
            raise self._refusal(
                "MEASURE", f"found needs={needs!r}, allowed: latents, model, predictions or network"
            )
        table, part = self._table_and_part(name, needs)
        measure = Measure(needs, table, part, **said)
        if measure.needs == "latents" and not measure.seconds_per_gb:
            return replace(measure, seconds_per_gb=SECONDS_PER_GB)
        return measure

    def _table_and_part(self, name: str, needs: str) -> tuple[Table, Table]:
        said = "TABLE" in self._values
        if needs != "latents":
            if not said:
                raise self._refusal("MEASURE", "without latents it needs a `TABLE` of its columns")
            table = Table(name, self._read_columns())
            return table, table
        if said and "merge" not in self.names:
            raise self._refusal("TABLE", "add `merge(parts)`, which makes this table of the parts")
        meaning = " ".join(self._docstring.partition("\n\n")[0].split()).rstrip(".") or name
        part = Table(f"{name}_per_image", per_image_columns("value", meaning))
        if said:
            return Table(name, self._read_columns()), part
        return Table(name, mean_columns("value", f"{meaning}; mean over images")), part

    def _read_columns(self) -> Columns:
        """Read `TABLE`; a column that has a type but no sentence is described by its name."""
        columns = self._literal_value("TABLE", self._values["TABLE"])
        try:
            return {
                str(column): (said, column) if isinstance(said, str) else (said[0], said[1])
                for column, said in columns.items()
            }
        except (AttributeError, TypeError, IndexError) as error:
            raise self._refusal(
                "TABLE", "allowed: {'column': 'float64'} or {'column': ('float64', 'what it is')}"
            ) from error

    def _fields_of_measure(self) -> dict[str, Any]:
        """Read the fields set by `MEASURE = Measure(...)` or a dictionary; refuse unknown ones."""
        value = self._values.get("MEASURE")
        if value is None:
            return {}
        if isinstance(value, ast.Call):
            said = {
                str(each.arg): self._literal_value("MEASURE", each.value) for each in value.keywords
            }
        else:
            said = self._literal_value("MEASURE", value)
        for key in said:
            if key not in FIELDS:
                allowed = ", ".join(FIELDS)
                raise self._refusal("MEASURE", f"found {quoted(key)}, allowed: {allowed}")
        return said

    def _literal_value(self, constant: str, value: ast.expr) -> Any:
        try:
            return ast.literal_eval(value)
        except ValueError as error:
            raise self._refusal(
                constant, "it is read without running the file: give plain values"
            ) from error

    def _refusal(self, constant: str, why: str) -> VitscopeError:
        line = self._values[constant].lineno if constant in self._values else 1
        return VitscopeError(f"{self._where}: {self._file}, line {line}: {constant}: {why}.")


# Fail if a field is renamed in `Measure` but not here.
assert {each.name for each in fields(Measure)} >= {*FIELDS}
