"""How the library is called from Python, read from its source without running it."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import vitscope
from vitscope.errors import VitscopeError

# What docs/python.md describes besides the names of the package itself: the types they return.
RETURNED = {"Made": "vitscope.scopes.tables", "Tables": "vitscope.scopes.tables"}
# The name of an object in examples, if it is not its class in small letters.
CALLED = {"Tables": "scope"}

Definition = ast.FunctionDef | ast.ClassDef


def describe(name: str) -> str:
    """Describe a function, or a class with its methods: its signatures and docstrings."""
    node, lines = _find_definition(name)
    if isinstance(node, ast.FunctionDef):
        return _describe_function(node, lines, f"vitscope.{name}")
    called = CALLED.get(name, name.lower())
    parts = [f"\n{_read_docstring(node)}\n"]
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            parts.append(_describe_function(method, lines, f"{called}.{method.name}"))
    return "".join(parts)


def _find_definition(name: str) -> tuple[Definition, list[str]]:
    module = {**vitscope._PLACES, **RETURNED}[name]
    spec = find_spec(module)
    lines = (
        Path(spec.origin).read_text(encoding="utf-8").splitlines() if spec and spec.origin else []
    )
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, Definition) and node.name == name:
            return node, lines
    raise VitscopeError(f"There is no {name} in {module}: say where it is.")


def _read_docstring(node: Definition) -> str:
    text = ast.get_docstring(node)
    if not text:
        raise VitscopeError(f"{node.name} has no docstring: give it one.")
    return text


def _describe_function(node: ast.FunctionDef, lines: list[str], called: str) -> str:
    signature = _read_signature(node, lines)
    if any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list):
        signature = signature.removeprefix("()")
    return f"\n```python\n{called}{signature}\n```\n\n{_read_docstring(node)}\n"


def _read_signature(node: ast.FunctionDef, lines: list[str]) -> str:
    written = dedent("\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1]))
    arguments = written.removeprefix(f"def {node.name}").removesuffix(":")
    arguments = re.sub(r"self(, )?(,\n    )?", "", arguments, count=1)
    # Quotes are for late imports.
    return re.sub(r'(: |-> )"([^"]+)"', r"\1\2", arguments)
