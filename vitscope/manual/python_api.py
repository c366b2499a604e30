"""How the library is called from Python, read from its source without running it."""

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import vitscope
from vitscope.errors import VitscopeError

# What docs/python.md describes besides the names of the package itself: the types they return.
RETURNED = {"Made": "vitscope.scopes.reading", "Tables": "vitscope.scopes.scope"}
# The name of an object in examples, if it is not its class in small letters.
CALLED = {"Tables": "scope"}
LONGEST = 88

Definition = ast.FunctionDef | ast.ClassDef


def describe(name: str) -> str:
    """Describe a function, or a class with its methods: its signatures and docstrings."""
    node = _find_definition(name)
    if isinstance(node, ast.FunctionDef):
        return _describe_function(node, f"vitscope.{name}")
    called = CALLED.get(name, name.lower())
    parts = [f"\n{_read_docstring(node)}\n"]
    for method in _public_methods(node):
        parts.append(_describe_function(method, f"{called}.{method.name}"))
    return "".join(parts)


def _find_definition(name: str) -> Definition:
    module = {**vitscope._PLACES, **RETURNED}[name]
    spec = find_spec(module)
    path = Path(spec.origin) if spec and spec.origin else None
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path else ():
        if isinstance(node, Definition) and node.name == name:
            return node
    raise VitscopeError(f"There is no {name} in {module}: say where it is.")


def _public_methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            yield method


def _read_docstring(node: Definition) -> str:
    text = ast.get_docstring(node)
    if not text:
        raise VitscopeError(f"{node.name} has no docstring: give it one.")
    return text


def _describe_function(node: ast.FunctionDef, called: str) -> str:
    return f"\n```python\n{_format_signature(node, called)}\n```\n\n{_read_docstring(node)}\n"


def _format_signature(node: ast.FunctionDef, called: str) -> str:
    """Return the signature of a function in one line, or with a line for each argument."""
    returned = f" -> {_format_type(node.returns)}"
    if any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list):
        return f"{called}{returned}"
    arguments = [each for each in _format_arguments(node.args) if each != "self"]
    line = f"{called}({', '.join(arguments)}){returned}"
    if len(line) <= LONGEST:
        return line
    return "\n".join([f"{called}(", *(f"    {each}," for each in arguments), f"){returned}"])


def _format_arguments(given: ast.arguments) -> Iterator[str]:
    without = len(given.args) - len(given.defaults)
    defaults = [None] * without + [*given.defaults]
    for argument, default in zip(given.args, defaults, strict=True):
        yield _format_argument(argument, default)
    if given.vararg:
        yield f"*{_format_argument(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _format_argument(argument, default)
    if given.kwarg:
        yield f"**{_format_argument(given.kwarg, None)}"


def _format_argument(argument: ast.arg, default: ast.expr | None) -> str:
    typed = (
        f"{argument.arg}: {_format_type(argument.annotation)}"
        if argument.annotation
        else argument.arg
    )
    if default is None:
        return typed
    return f"{typed}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


def _format_type(annotation: ast.expr | None) -> str:
    """Return a type as it reads; quotes are for late imports."""
    return "" if annotation is None else ast.unparse(annotation).replace("'", "")
