"""How things look is said in the style and in `looks.py`: figures say what is drawn."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from vitscope.package_data import ROOT

# What says how something looks, where its value is written out.
LOOKS = {
    *("alpha", "color", "edgecolor", "facecolor", "linewidth", "linewidths", "lw"),
    *("markeredgewidth", "markersize", "mew", "ms"),
}
# What is the same in every style: nothing, or all of it, or the paper and the ink.
ALLOWED = {0, 1, "none", "white", "black", "face"}
MODULES = [
    *(ROOT / "vitscope" / "drawing").glob("*.py"),
    *(ROOT / "vitscope" / "measures").glob("*/*.py"),
    ROOT / "vitscope" / "buildup" / "figure.py",
]
FIGURES = [
    path
    for path in sorted(MODULES)
    if path.name != "looks.py" and "matplotlib" in path.read_text(encoding="utf-8")
]


def looks_in(source: str) -> Iterator[str]:
    """Yield what a module says of colours, widths and shades by values of its own."""
    for node in ast.walk(ast.parse(source)):
        pairs: list[tuple[str | None, ast.expr]] = []
        if isinstance(node, ast.Call):
            pairs += [(keyword.arg, keyword.value) for keyword in node.keywords]
        if isinstance(node, ast.Dict):
            pairs += [
                (str(key.value), value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant)
            ]
        for name, value in pairs:
            if name in LOOKS and isinstance(value, ast.Constant) and value.value not in ALLOWED:
                yield f"line {node.lineno}: {name}={value.value!r}"
        if isinstance(node, ast.Constant) and str(node.value).startswith("#"):
            yield f"line {node.lineno}: {node.value}"


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_figure_says_nothing_of_colours_widths_and_shades(path: Path) -> None:
    assert [*looks_in(path.read_text(encoding="utf-8"))] == []
