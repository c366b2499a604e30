"""The kinds of figures, known without importing matplotlib.

A kind is a module of this package with a function `plot`, which takes the tables of the kind in
order, the members and the published curves, and returns a figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, nearest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vitscope.published import Published

# Each kind of figure, and the tables that it needs.
KINDS: dict[str, tuple[str, ...]] = {"feature_variance": ("feature_variance",)}


@dataclass(frozen=True)
class Member:
    """A model of a figure: its name in the tables, what to call it, and its family."""

    model: str
    label: str
    family: str


def module_of(kind: str) -> str:
    """Return the name of the module that draws a kind of figure."""
    if kind not in KINDS:
        raise VitscopeError(
            f"There is no kind of figure '{kind}', only {', '.join(sorted(KINDS))}."
            f"{nearest(kind, KINDS)}"
        )
    return f"{__name__}.{kind}"


def draw(
    kind: str,
    tables: Mapping[str, "pd.DataFrame"],
    members: Sequence[Member],
    published: Mapping[str, "Published"],
) -> "Figure":
    """Draw a figure from its tables; call it within `canvas.style`."""
    plot = import_module(module_of(kind)).plot
    figure: Figure = plot(*(tables[name] for name in KINDS[kind]), members, published)
    return figure
