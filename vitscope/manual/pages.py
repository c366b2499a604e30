"""Write the generated parts of documentation pages from the code that they describe.

`python -m vitscope.manual.pages` writes each part between its markers, in all `PAGES`.
"""

import ast
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from vitscope import _PLACES
from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text
from vitscope.jobs.tables import find_table
from vitscope.manual.contrary_claims import list_contrary
from vitscope.measures import captions, registry
from vitscope.measures.measure import Question
from vitscope.networks.building.family import arch_schema, family_names, module_of
from vitscope.package_data import ROOT
from vitscope.settings.keys import Config
from vitscope.settings.section import Schema, schema_of_section, type_in_words
from vitscope.studies.loading import BUNDLED_STUDIES, load_study, study_schema

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.claims.claim import Claim
    from vitscope.settings.keys import Figure

PAGES = (
    ROOT / "README.md",
    ROOT / "config" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "figures").glob("*.md")),
)
# The folder of pictures of the default study's figures, relative to `docs/`.
PICTURES = "../tests/pixels/expected"
# The studies whose claims are counted, and the folder of the tables expected of each.
_EXPECTED = ROOT / "tests" / "expected"
STUDIES = {"mini": _EXPECTED, "cifar100": _EXPECTED / "cifar100"}
GENERATED = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
# A number in a sentence: `<!-- of STUDY TABLE KEY/KEY: VALUE FORMAT -->number<!-- -->`.
NUMBER = re.compile(r"(<!-- of (\w+) (\w+) (\S+): (.+?) (\S+) -->).*?(<!-- -->)", re.DOTALL)
# The columns that the keys of a number name in turn, for each table that pages take numbers from.
KEYS = {
    "claims": ("claim", "model", "versus", "snapshot"),
    "fit": ("model", "metric"),
    "history": ("model",),
    "spectra": ("model", "snapshot", "images"),
    "buildup_fig12a": ("step",),
}
# What docs/python.md calls an object of a class.
OBJECTS = {
    "Tables": "scope",
    "Scope": "scope",
    "Comparison": "comparison",
    "Made": "made",
    "Watch": "watched",
    "Block": "block",
}
# How to write a schema's bounds after its type.
BOUNDS = {
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "up to {}",
    "exclusiveMaximum": "below {}",
}

# A key of a settings file, its value, its default, and what it means.
Setting = tuple[str, str, str, str]


def regenerate(page: str) -> str:
    """Return the text of a page with its generated parts written anew."""
    written = GENERATED.sub(
        lambda found: f"{found[1]}{_write_generated_part(found[2])}{found[3]}", page
    )
    return NUMBER.sub(
        lambda found: f"{found[1]}{_write_number(*found.groups()[1:6])}{found[7]}", written
    )


@cache
def _expected_table(study: str, name: str) -> "pd.DataFrame":
    """Return an expected table.

    `history` has the last epoch of each bundled history, and `spectra` how many eigenvalues of the
    bundled spectra there are, and how many of them are `negative`.
    """
    import pandas as pd

    if name == "history":
        models = load_study(BUNDLED_STUDIES / f"{study}.yaml").models
        ends = [
            pd.read_parquet(ROOT / model.history["bundled"]).tail(1).assign(model=each)
            for each, model in models.items()
            if model.history
        ]
        return pd.concat(ends)
    if name == "spectra":
        spectra = pd.read_parquet(ROOT / f"resources/spectra/{study}.parquet")
        signs = spectra.assign(negative=spectra["eigenvalue"] < 0, count=1)
        return signs.groupby([*KEYS[name]], as_index=False)[["count", "negative"]].sum()
    return pd.read_csv(STUDIES[study] / f"{name}.csv")


def _write_number(study: str, table: str, keys: str, value: str, form: str) -> str:
    """Return what `value`, a column or a sum of columns, is in the rows with these `keys`.

    Keys are patterns (`vit_light*`), those at the end may be left out. Several rows give several
    numbers, in the order of the table.
    """
    rows = _counted_in_manual()[study] if table == "claims" else _expected_table(study, table)
    for column, key in zip(KEYS[table], keys.split("/"), strict=False):
        rows = rows[[fnmatchcase(each, key) for each in rows[column].fillna("").astype(str)]]
    found: Any = rows.eval(value)
    if found.empty or found.isna().any():
        raise VitscopeError(
            f"There is no number {value} of {study} in {table} for {keys}: correct the "
            f"page that names it."
        )
    return ", ".join(form.format(each) for each in found)


def _write_generated_part(name: str) -> str:
    kind, _, what = name.partition(" ")
    each_of: dict[str, tuple[Callable[[str], str], Iterable[str]]] = {
        "measures": (_describe_measure_in_manual, registry.names()),
        "figures": (_list_figures_in_manual, get_args(Question)),
        "captions": (_list_captions_in_manual, [what]),
        "claims": (_describe_claims_in_manual, registry.names()),
        "table": (_list_columns, [what]),
        "families": (_describe_family_in_manual, family_names()),
        "python": (_describe_python_in_manual, [what]),
    }
    if kind in each_of:
        return "".join(map(*each_of[kind]))
    if kind == "paper":
        return _list_verdicts_in_manual()
    if kind == "contrary":
        return _list_contrary_in_manual()
    if kind == "effect":
        return _list_effects_in_manual()
    if kind == "config":
        return _format_settings(_list_keys_in_manual(schema_of_section(Config)))
    schema = study_schema()
    if not what:
        # The sections of a study have tables of their own.
        return _format_settings(_list_keys_in_manual(schema, deep=False))
    return _format_settings(_list_keys_in_manual(schema["properties"][what]))


def _describe_measure_in_manual(measure: str) -> str:
    """Describe the table of a measure: where it is, what a row is, its columns, and its parts."""
    text = _read_docstring_for_manual(registry.module(measure)).partition(
        f"The table `{measure}`: "
    )[2]
    row, _, notes = text.partition("\n\nThe table `")[0].partition("\n\n")
    lines = [
        f"\n## {measure}\n\n`results/{{study}}/tables/{measure}.parquet`: {row}\n\n",
        _list_columns(measure),
        f"\n{notes}\n" if notes else "",
    ]
    parts = registry.declared(measure).part_table.name
    if parts != measure:
        path = f"`results/{{study}}/{measure}/{{model}}/{{part}}.parquet`"
        lines.append(f"\nParts, {path}, are tables `{parts}`:\n\n{_list_columns(parts)}")
    return "".join(lines)


@cache
def _default_figures() -> "Mapping[str, Figure]":
    return load_study(BUNDLED_STUDIES / "mini.yaml").figures


@cache
def _default_figures_by_kind() -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for name, figure in _default_figures().items():
        named.setdefault(figure.kind, []).append(name)
    return named


def _kinds_about(question: str) -> list[str]:
    kinds = registry.kinds()
    named = dict.fromkeys([*_default_figures_by_kind(), *kinds])
    measures = {kind: registry.declared(kinds[kind].measure) for kind in named}
    return [kind for kind, measure in measures.items() if measure.question == question]


def _picture_of_kind(kind: str) -> str:
    """Return the picture of a kind, from docs/; if the default study has none, one of its own."""
    names = _default_figures_by_kind().get(kind)
    return f"{PICTURES}/test_figure_{names[0]}.png" if names else f"images/{kind}.png"


def _list_figures_in_manual(question: str) -> str:
    page = f"figures/{question.lower().replace(' ', '-')}.md"
    lines = []
    for kind in _kinds_about(question):
        names = _default_figures_by_kind().get(kind, ())
        declared = registry.kinds()[kind]
        figures = ", ".join(f"`{name}`" for name in names) or "not in the default study"
        title, shows = captions.title_of(declared), escape(captions.sentence_of(declared))
        # Describe the picture by the sentence, since the title stands beside it.
        picture = f'<img src="{_picture_of_kind(kind)}" width="240" alt="{shows}">'
        lines.append(f"- [{picture} {title}]({page}#{kind}): {figures}\n")
    return f"\n### [{question}]({page})\n\n{''.join(lines)}" if lines else ""


def _list_captions_in_manual(question: str) -> str:
    kinds = _kinds_about(question)
    listed = ", ".join(f"[`{kind}`](#{kind})" for kind in kinds)
    parts = [f"Kinds of figures: {listed}.\n"]
    for kind in kinds:
        declared, picture = registry.kinds()[kind], f"../{_picture_of_kind(kind)}"
        caption = captions.in_markdown(captions.caption_of(declared))
        shown = [
            f"![{captions.title_of(declared)}]({picture})",
            *_pictures_of_changes(kind),
            caption,
        ]
        parts.append("\n\n".join([f"## {kind}", *shown]))
    return "\n".join(parts)


def _pictures_of_changes(kind: str) -> list[str]:
    """Return the picture of a kind's first figure that shows changes over blocks, if any does."""
    figures = _default_figures()
    named = [
        name
        for name in _default_figures_by_kind().get(kind, ())
        if figures[name].options.get("change")
    ]
    return [
        f"![{captions.title_of(registry.kinds()[kind])}: the change over each block]"
        f"(../{PICTURES}/test_figure_{name}.png)"
        for name in named[:1]
    ]


def _describe_claims_in_manual(measure: str) -> str:
    lines = []
    for kind, evidence in registry.claims_of(measure).items():
        rows = (
            (f"`{c.name}`", c.statement, c.source, c.statistic.measure) for c in evidence.claims
        )
        table = _format_table(("claim", "statement", "source", "what is counted"), rows)
        rules = "\n\n".join(dict.fromkeys(claim.rule for claim in evidence.claims))
        lines.append(f"\n### {kind}\n\n{table}\n{rules}\n")
    return "".join(lines)


def _counted_in_manual() -> "dict[str, pd.DataFrame]":
    """Return the distinct claims of each study whose claims are counted."""
    from vitscope.claims.counting import distinct_claims

    return {study: distinct_claims(_expected_table(study, "claims")) for study in STUDIES}


def _claims_of_paper() -> "Iterator[tuple[str, Claim]]":
    """Yield the claims of the paper, each with the kind of figure that it is counted in."""
    for measure in registry.names():
        for kind, evidence in registry.claims_of(measure).items():
            for claim in evidence.claims:
                if claim.source.startswith(("Fig.", "Section", "abstract")):
                    yield kind, claim


def _published_in_words(claim: str) -> str:
    """Say what published points say of a claim; a dash if they say nothing."""
    import pandas as pd

    from vitscope.claims.report import finding_as_text

    rows = pd.concat([rows[rows["claim"] == claim] for rows in _counted_in_manual().values()])
    said = [
        finding_as_text(row, "published")
        + ("" if pd.isna(row["published_verdict"]) else f", {row['published_verdict']}")
        for row in rows.dropna(subset="published_value").to_dict("records")
    ]
    return "; ".join(dict.fromkeys(said)) or "–"


def _list_verdicts_in_manual() -> str:
    """Return a table of the paper's claims: what is published, and the verdicts of each study."""
    from vitscope.claims.counting import once_per_recipe
    from vitscope.claims.report import VERDICTS

    def verdicts_in_words(rows: "pd.DataFrame") -> str:
        once = once_per_recipe(rows)
        known = once[once["holds"].notna()]
        of_blocks = known["measured_total"].notna().all() and known["versus"].isna().all()
        groups = [(does, known[known["holds"] == holds]) for holds, does in VERDICTS.items()]
        said = [
            f"{len(found)} {does}{_hints_in_words(found)}"
            f"{_counts_in_words(found, rows) if of_blocks else ''}"
            for does, found in groups
            if len(found)
        ]
        return "; ".join(said) or "–"

    counted = _counted_in_manual().values()
    # Kinds that show one measure in several ways make the same claims.
    cells = {
        claim.name: (
            claim.statement,
            claim.source,
            f"[{kind}](claims.md#{kind})",
            _published_in_words(claim.name),
            *(verdicts_in_words(rows[rows["claim"] == claim.name]) for rows in counted),
        )
        for kind, claim in _claims_of_paper()
    }
    head = ("claim", "in the paper", "counted in", "published", *(f"`{name}`" for name in STUDIES))
    return _format_table(head, cells.values())


def _hints_in_words(found: "pd.DataFrame") -> str:
    """Say how many verdicts may be chance among as many, as their q says."""
    from vitscope.claims.verdicts import is_hint

    hints = int(is_hint(found).sum())
    return f" ({'a hint' if hints == len(found) == 1 else f'{hints} of them hints'})" * bool(hints)


def _counts_in_words(found: "pd.DataFrame", every: "pd.DataFrame") -> str:
    """Say for each network or recipe in how many of its blocks a claim holds, run by run."""
    said = []
    for row in found.to_dict("records"):
        runs = every[every["recipe"] == row["recipe"]] if row["trainings"] > 1 else None
        counts = [row["measured_count"]] if runs is None else runs["measured_count"].tolist()
        listed = ", ".join(f"{count:.0f}" for count in counts)
        at = "" if isinstance(row["snapshot"], float) else f" at {row['snapshot']}"
        said.append(f"`{row['model']}`{at} {listed} of {row['measured_total']:.0f}")
    return f" ({', '.join(said)})"


def _list_effects_in_manual() -> str:
    """Return a table of how many MSAs of each bundled network do as the paper says."""
    from vitscope.manual.effect_by_network import HEAD, list_effects

    studies = {name: load_study(BUNDLED_STUDIES / f"{name}.yaml") for name in STUDIES}
    fits = {
        name: _expected_table(name, "fit") if (folder / "fit.csv").is_file() else None
        for name, folder in STUDIES.items()
    }
    return _format_table(HEAD, list_effects(studies, _counted_in_manual(), fits))


def _list_contrary_in_manual() -> str:
    """Return a list of the paper's claims that a study contradicts, with the numbers."""
    models = {name: load_study(BUNDLED_STUDIES / f"{name}.yaml").models for name in STUDIES}
    labels = {
        study: {name: model.label or name for name, model in of_study.items()}
        for study, of_study in models.items()
    }
    published = {claim.name: _published_in_words(claim.name) for _, claim in _claims_of_paper()}
    return "\n".join(list_contrary(_counted_in_manual(), labels, published)) + "\n"


def _describe_family_in_manual(family: str) -> str:
    schema, about = arch_schema(family), _read_docstring_for_manual(module_of(family))
    summary = " ".join(about.partition("\n\n")[0].split())
    keys = [*_list_keys_in_manual(schema)]
    if others := schema.get("additionalProperties"):
        keys.append(("any other", "", "", others["description"]))
    choices = (each["required"] for each in schema.get("oneOf", ()))
    options = (" with ".join(f"`{key}`" for key in choice) for choice in choices)
    choice = f"\nExactly one of: {'; '.join(options)}.\n" if "oneOf" in schema else ""
    return f"\n#### {family}\n\n{summary}\n\n{_format_settings(keys)}{choice}"


def _describe_python_in_manual(name: str) -> str:
    """Describe a public function, or a class with its methods, as its source does."""
    lines, found = _read_definition_for_manual(name)
    if isinstance(found, ast.FunctionDef):
        return _describe_function_in_manual(lines, found, f"vitscope.{name}")
    parts = [f"\n{_docstring_of_definition(name, found)}\n"]
    inherited = {}
    if any(isinstance(base, ast.Name) and base.id == "Tables" for base in found.bases):
        _, tables = _read_definition_for_manual("Tables")
        inherited = {each.name: ast.get_docstring(each) for each in _methods_for_manual(tables)}
    for method in _methods_for_manual(found):
        if ast.get_docstring(method) != inherited.get(method.name):
            called = OBJECTS[name] + ("" if method.name == "__call__" else f".{method.name}")
            parts.append(_describe_function_in_manual(lines, method, called))
    return "".join(parts)


def _read_definition_for_manual(name: str) -> tuple[list[str], ast.FunctionDef | ast.ClassDef]:
    """Return the lines of the module of a public name, and where they define it."""
    source = _source_for_manual(_PLACES.get(name, "vitscope.scopes.tables"))
    (found,) = (
        each
        for each in ast.parse(source).body
        if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == name
    )
    return source.splitlines(), found


def _methods_for_manual(found: ast.FunctionDef | ast.ClassDef) -> list[ast.FunctionDef]:
    methods = [each for each in found.body if isinstance(each, ast.FunctionDef)]
    return [each for each in methods if each.name[0] != "_" or each.name == "__call__"]


def _describe_function_in_manual(lines: list[str], found: ast.FunctionDef, called: str) -> str:
    """Show how a function is called, in the lines of its source, above its docstring."""
    source = textwrap.dedent("\n".join(lines[found.lineno - 1 : found.body[0].lineno - 1]))
    if any(isinstance(each, ast.Name) and each.id == "property" for each in found.decorator_list):
        source = f"{called}{source.partition('(self)')[2]}"
    source = re.sub(rf"^def {found.name}\((\s*)(self(,\s+)?)?", rf"{called}(\1", source)
    # Types that are imported for checks alone stand in quotes.
    source = re.sub(r'(: |-> )"([^"]+)"', r"\1\2", source).removesuffix(":")
    return f"\n```python\n{source}\n```\n\n{_docstring_of_definition(called, found)}\n"


def _docstring_of_definition(name: str, found: ast.FunctionDef | ast.ClassDef) -> str:
    text = ast.get_docstring(found)
    if not text:
        raise VitscopeError(f"{name} has no docstring: give it one.")
    return text


def _source_for_manual(module: str) -> str:
    spec = find_spec(module)
    return Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""


def _read_docstring_for_manual(module: str) -> str:
    text = ast.get_docstring(ast.parse(_source_for_manual(module)))
    if not text:
        raise VitscopeError(f"The module {module} has no docstring: give it one.")
    return text


def _list_columns(name: str) -> str:
    columns = find_table(name).columns.items()
    rows = ((f"`{column}`", type_name, sentence) for column, (type_name, sentence) in columns)
    return _format_table(("column", "type", "meaning"), rows)


def _format_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [head, ("---" for _ in head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


def _format_settings(settings: Iterable[Setting]) -> str:
    return _format_table(("key", "value", "default", "meaning"), settings)


def _list_keys_in_manual(schema: Schema, prefix: str = "", deep: bool = True) -> Iterator[Setting]:
    """Yield the keys of a schema, and if `deep` all keys inside them; users choose each NAME."""
    for key, inner in schema.get("properties", {}).items():
        default = json.dumps(inner["default"]) if "default" in inner else ""
        yield (
            f"`{prefix}{key}`",
            _describe_value_in_manual(inner),
            "required" if key in schema.get("required", ()) else default and f"`{default}`",
            inner.get("description", "").strip(),
        )
        if deep:
            yield from _list_keys_in_manual(inner, f"{prefix}{key}.")
    named = schema.get("additionalProperties")
    if isinstance(named, dict):
        yield from _list_keys_in_manual(named, f"{prefix}NAME.")


def _describe_value_in_manual(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(value).strip(chr(34))}`" for value in schema["enum"])
    if "title" in schema:
        return str(schema["title"])
    words = type_in_words(schema["type"])
    if "items" in schema:
        length = f" of {schema['maxItems']}" if "maxItems" in schema else ""
        words += f"{length}, each {_describe_value_in_manual(schema['items'])}"
    bounds = [words.format(schema[key]) for key, words in BOUNDS.items() if key in schema]
    return ", ".join([words, *bounds])


if __name__ == "__main__":
    for path in PAGES:
        write_text(path, regenerate(path.read_text(encoding="utf-8")))
