"""How the library is called from Python, read from its source without running it."""

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import vitscope
from vitscope.errors import VitscopeError

# What docs/python.md describes beside the names of the package itself: what these return.
RETURNED = {"Made": "vitscope.scopes.reading", "Tables": "vitscope.scopes.scope"}
# What an object is called in examples, where that is not its class in small letters.
CALLED = {"Tables": "scope"}
LONGEST = 88

Definition = ast.FunctionDef | ast.ClassDef


def described(name: str) -> str:
    """Describe a function, or a class with its methods: how it is called, and what it says."""
    node = _definition(name)
    if isinstance(node, ast.FunctionDef):
        return _function(node, f"vitscope.{name}")
    called = CALLED.get(name, name.lower())
    parts = [f"\n{_says(node)}\n"]
    for method in _public(node):
        parts.append(_function(method, f"{called}.{method.name}"))
    return "".join(parts)


def _definition(name: str) -> Definition:
    module = {**vitscope._PLACES, **RETURNED}[name]
    spec = find_spec(module)
    path = Path(spec.origin) if spec and spec.origin else None
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path else ():
        if isinstance(node, Definition) and node.name == name:
            return node
    raise VitscopeError(f"There is no {name} in {module}: say where it is.")


def _public(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            yield method


def _says(node: Definition) -> str:
    text = ast.get_docstring(node)
    if not text:
        raise VitscopeError(f"{node.name} says nothing of itself: give it a docstring.")
    return text


def _function(node: ast.FunctionDef, called: str) -> str:
    return f"\n```python\n{_signature(node, called)}\n```\n\n{_says(node)}\n"


def _signature(node: ast.FunctionDef, called: str) -> str:
    """Return how a function is called: in a line, or with a line for each argument."""
    returned = f" -> {_plain(node.returns)}"
    if any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list):
        return f"{called}{returned}"
    arguments = [each for each in _arguments(node.args) if each != "self"]
    line = f"{called}({', '.join(arguments)}){returned}"
    if len(line) <= LONGEST:
        return line
    return "\n".join([f"{called}(", *(f"    {each}," for each in arguments), f"){returned}"])


def _arguments(given: ast.arguments) -> Iterator[str]:
    without = len(given.args) - len(given.defaults)
    defaults = [None] * without + [*given.defaults]
    for argument, default in zip(given.args, defaults, strict=True):
        yield _argument(argument, default)
    if given.vararg:
        yield f"*{_argument(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _argument(argument, default)
    if given.kwarg:
        yield f"**{_argument(given.kwarg, None)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    typed = (
        f"{argument.arg}: {_plain(argument.annotation)}" if argument.annotation else argument.arg
    )
    if default is None:
        return typed
    return f"{typed}{' = ' if argument.annotation else '='}{ast.unparse(default)}"


def _plain(annotation: ast.expr | None) -> str:
    """Return a type as it is read; quotes are for what is imported late."""
    return "" if annotation is None else ast.unparse(annotation).replace("'", "")
