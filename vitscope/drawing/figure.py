"""A figure of a study: its members, and how it is drawn from tables.

The function that draws a kind of figure takes the tables in order, `members`, the values that the
kind declares and, if the kind shows published curves, `published`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from vitscope.claims.points import at_snapshots
from vitscope.errors import VitscopeError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vitscope.claims.points import AllPublished


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


def draw_from_tables(
    plot: str,
    tables: Mapping[str, "pd.DataFrame"],
    members: Members,
    published: "AllPublished | None" = None,
    snapshots: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> "Figure":
    """Draw a figure with the function `plot`, "module:name"; call this within `saving.style`.

    If `snapshots` are given and the tables have snapshots, only these are shown, in this order.
    """
    from vitscope.drawing.panels import with_scales, write_counts

    shown, given = at_snapshots(tables, snapshots), {**(values or {}), "members": members}
    for name, table in shown.items():
        # A table of pairs of models need not have rows of each model.
        if "other_model" not in table:
            _check_figure_has_rows(name, table, members)
    if published is not None:
        given["published"] = published
    with with_scales(given.pop("scales", None)):
        figure: Figure = resolve_name(plot)(*shown.values(), **given)
    first = next(iter(shown.values()))
    write_counts(figure, first[first["model"].isin([member.model for member in members])])
    return figure


def _check_figure_has_rows(name: str, table: "pd.DataFrame", members: Members) -> None:
    moments = {"": table}
    if "snapshot" in table:
        moments = {f" at '{moment}'": rows for moment, rows in table.groupby("snapshot")}
    for at, rows in moments.items():
        there = {*rows["model"]}
        for member in members:
            if member.model not in there:
                raise VitscopeError(
                    f"The {name} table has no model '{member.model}'{at}: delete the table and "
                    f"run again."
                )


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
