"""The points that a figure is drawn of, as one table to take away."""

from collections.abc import Mapping, Sequence

import pandas as pd

from vitscope.claims.points import Published
from vitscope.drawing.figure import Member
from vitscope.measures.columns import without_resamples


def points_of(
    tables: Mapping[str, pd.DataFrame],
    members: Sequence[Member],
    published: Mapping[str, Published],
) -> pd.DataFrame:
    """Return the rows of all tables, and published points, with what the figure calls a model.

    The block table is left out where it is not all: its cut points are bands and marks. The column
    `published` names the series of a published point.
    """
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
