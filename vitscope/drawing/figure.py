"""A figure of a study: its members, and how it is drawn from tables.

The function that draws a kind of figure takes the tables in order, `members`, the values that the
kind declares and, if the kind shows published curves, `published`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from vitscope.claims.points import AllPublished

GIVEN_AXES: ContextVar["Axes | None"] = ContextVar("axes that are drawn in", default=None)


@dataclass(frozen=True)
class Member:
    """A model of a figure: its name in the tables, what to call it, and its family.

    `nth` numbers the networks of a family whose name does not tell how they are built, such as
    timm. `recipe` is the name of the first of several models whose training runs differ only in
    their seeds.
    """

    model: str
    label: str
    family: str
    epoch: int | None = None
    nth: int = 0
    recipe: str = ""


# The models of a figure, in order.
Members = Sequence[Member]


def literal(text: str) -> str:
    """Escape `$` in a text, so that matplotlib takes no part of it for a formula."""
    return text.replace("$", r"\$")


def escaped_member(member: Mapping[str, Any]) -> Member:
    """Return a member of a figure, with `$` in its label escaped."""
    return Member(**{**member, "label": literal(member["label"])})


def rows_of(
    table: "pd.DataFrame", model: str, order: Sequence[str] = (), snapshot: str = ""
) -> "pd.DataFrame":
    """Return the rows of a model, or of one `snapshot` of it, sorted by `order`."""
    chosen = table["model"] == model
    if snapshot:
        chosen &= table["snapshot"] == snapshot
    rows = table[chosen]
    if not order:
        return rows
    return rows.sort_values(list(order), ignore_index=True, kind="stable")


@contextmanager
def with_variable(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set a context variable within a `with` block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def drawing_in(axes: "Axes | None") -> AbstractContextManager[None]:
    """Draw figures of one panel in `axes`, whose figure keeps its size; None makes new axes."""
    return with_variable(GIVEN_AXES, axes)


def figure_as_table(
    tables: "Mapping[str, pd.DataFrame]", members: Members, published: "AllPublished"
) -> "pd.DataFrame":
    """Return the points of a figure as one table: rows of its tables, and published points.

    The block table is left out if there are other tables: figures show its cut points as bands and
    marks.
    """
    import pandas as pd

    from vitscope.claims.intervals import without_resamples

    names = [name for name in tables if name != "blocks"] or list(tables)
    frames = [without_resamples(tables[name]).assign(table=name) for name in names]
    frames += [
        curve.points.assign(table=names[0], model=model, published=curve.series)
        for model, curve in published.items()
    ]
    points = pd.concat(frames, ignore_index=True)
    labels = points["model"].map({member.model: member.label for member in members})
    first = points.reindex(columns=["table", "model", "published"]).assign(label=labels)
    return first.join(points.drop(columns=[*first], errors="ignore"))
