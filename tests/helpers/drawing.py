"""The kinds of figures by name: which module draws each, and from which tables.

Each is declared in the room of its measure. The job that draws a figure does not read this: the
rule gives it the module and the tables.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vitscope.drawing.figure import Member, draw
from vitscope.errors import VitscopeError, nearest
from vitscope.measures import registry
from vitscope.measures.measure import FigureKind

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vitscope.claims.published import Published


def find_kind(name: str) -> FigureKind:
    """Return a kind of figure by its name."""
    kinds = registry.kinds()
    if name not in kinds:
        raise VitscopeError(
            f"There is no kind of figure '{name}', only {', '.join(sorted(kinds))}."
            f"{nearest(name, kinds)}"
        )
    return kinds[name]


def module_of(kind: str) -> str:
    """Return the name of the module that draws a kind of figure."""
    return registry.figure_module(find_kind(kind))


def draw_kind(
    kind: str,
    tables: Mapping[str, "pd.DataFrame"],
    members: Sequence[Member],
    published: Mapping[str, "Published"],
    snapshots: Sequence[str] = (),
) -> "Figure":
    """Draw a figure of a kind from its tables, as `draw` does."""
    found = find_kind(kind)
    needed = {name: tables[name] for name in found.tables}
    curves = published if found.published else None
    return draw(module_of(kind), needed, members, curves, snapshots, found.values)
