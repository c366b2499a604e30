"""A figure of a study: its members, and how it is drawn from tables.

What draws a kind of figure takes its tables in order, `members`, the values that the kind declares
and, where it shows published curves, `published`.
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

    `nth` numbers the architectures of a study of one family, where that says nothing of them.
    `recipe` is the first of the trainings of one network and recipe by several seeds.
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
    """Return a text as matplotlib shows it as it is: none of it is taken for a formula."""
    return text.replace("$", r"\$")


def as_shown(member: Mapping[str, Any]) -> Member:
    """Return a member of a figure, whose label is shown as it is."""
    return Member(**{**member, "label": literal(member["label"])})


def rows_of(
    table: "pd.DataFrame", model: str, order: Sequence[str] = (), snapshot: str = ""
) -> "pd.DataFrame":
    """Return the rows of a model, of one snapshot if it is named, in a stable order."""
    chosen = table["model"] == model
    if snapshot:
        chosen &= table["snapshot"] == snapshot
    rows = table[chosen]
    if not order:
        return rows
    return rows.sort_values(list(order), ignore_index=True, kind="stable")


@contextmanager
def within(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Let a variable that drawing looks at have a value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def draw(
    plot: str,
    tables: Mapping[str, "pd.DataFrame"],
    members: Members,
    published: "AllPublished | None" = None,
    snapshots: Sequence[str] = (),
    values: Mapping[str, Any] | None = None,
) -> "Figure":
    """Draw a figure by the function of its kind, `module:name`; call it within `saving.style`.

    With `snapshots`, of a kind that has them, it shows these in this order and no others.
    """
    from vitscope.drawing.panels import scaled, write_above

    shown, given = at_snapshots(tables, snapshots), {**(values or {}), "members": members}
    for name, table in shown.items():
        # A table of pairs of models has rows of some of them.
        if "other_model" not in table:
            _check_rows(name, table, members)
    if published is not None:
        given["published"] = published
    with scaled(given.pop("scales", None)):
        figure: Figure = resolve_name(plot)(*shown.values(), **given)
    write_above(figure, measured_on(tables, members, snapshots))
    return figure


def measured_on(
    tables: Mapping[str, "pd.DataFrame"], members: Members, snapshots: Sequence[str]
) -> str:
    """Return on how many images, in how many batches, a figure was measured, if it says so."""
    table = next(iter(at_snapshots(tables, snapshots).values()))
    rows = table[table["model"].isin([member.model for member in members])]
    said = []
    if "batch" in rows:
        said.append(_counted(rows.groupby("model")["batch"].nunique(), "batch", "batches"))
    elif "batches" in rows:
        said.append(_counted(rows.groupby("model")["batches"].max(), "batch", "batches"))
    if "images" in rows:
        of_model = rows.groupby("model")["images"]
        # A bin of confidence has some of the images.
        counts = of_model.sum() if "bin" in rows else of_model.max()
        of_each = " each" if "batch" in rows else ""
        said.append(_counted(counts, "image", "images", of_each))
    return ", ".join(filter(None, said))


def _counted(counts: "pd.Series", one: str, many: str, after: str = "") -> str:
    known = counts.dropna().astype(int)
    if known.empty:
        return ""
    low, high = known.min(), known.max()
    number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{number} {one if high == 1 else many}{after}"


def _check_rows(name: str, table: "pd.DataFrame", members: Members) -> None:
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


def points_of(
    tables: "Mapping[str, pd.DataFrame]", members: Members, published: "AllPublished"
) -> "pd.DataFrame":
    """Return the points of a figure as one table: rows of its tables, and published points.

    The block table is left out where it is not all: its cut points are bands and marks.
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
