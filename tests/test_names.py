"""Names can be followed: what is defined is named somewhere, so that a search and a rename find it.

A name in code counts, and so does one in a string, as `module:name` or alone.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from vitscope.package_data import PACKAGE, ROOT

MODULES = sorted(PACKAGE.rglob("*.py"))
RULES = [ROOT / "Snakefile", *ROOT.glob("rules/**/*.smk"), *ROOT.glob("scripts/*.py")]
# Declarations are found by what they are, whatever they are called.
DECLARATIONS = {"Measure"}
NAME = re.compile(r"(?:[\w.]+:)?(\w+)")


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


def defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            called = node.value.func if isinstance(node.value, ast.Call) else None
            if not (isinstance(called, ast.Name) and called.id in DECLARATIONS):
                stored = (each for each in ast.walk(node) if isinstance(each, ast.Name))
                yield from (each.id for each in stored if isinstance(each.ctx, ast.Store))


def named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.Constant) and (name := NAME.fullmatch(str(node.value))):
            yield name[1]


def test_nothing_is_reached_by_a_computed_name_alone() -> None:
    trees = [*map(parsed, MODULES)]
    found = {name for tree in trees for name in named(tree)}
    found |= {word for file in RULES for word in re.findall(r"\w+", file.read_text())}
    unnamed = {name for tree in trees for name in defined(tree)} - found
    assert {name for name in unnamed if not name.startswith("__")} == set()


def test_no_two_classes_have_one_name() -> None:
    nodes = (node for tree in map(parsed, MODULES) for node in ast.walk(tree))
    classes = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1] == []


def test_a_name_that_is_computed_is_found() -> None:
    made = "def plot_tails(): ...\nKINDS = {}\nCKA = Measure()\ngetattr(KINDS, f'plot_{1}')"
    tree = ast.parse(made)
    assert {*defined(tree)} - {*named(tree)} == {"plot_tails"}
    followed = ast.parse(f"{made}\nuse('show:plot_tails')")
    assert {*defined(followed)} - {*named(followed)} == set()
