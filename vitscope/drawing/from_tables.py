"""Draw a figure of a kind from its tables."""

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from vitscope.claims.points import at_snapshots
from vitscope.drawing.figure import Members
from vitscope.drawing.notes import write_counts
from vitscope.drawing.panels import with_scales
from vitscope.errors import VitscopeError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vitscope.claims.points import AllPublished


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
