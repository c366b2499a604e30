"""Draw a measure of a user's own: by depth, or with a function of its file."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.published import Published
from vitscope.drawing.by_depth import plot_by_depth
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError
from vitscope.networks.building.own_code import find_code
from vitscope.networks.building.own_run import running


def plot(
    table: pd.DataFrame,
    members: Sequence[Member],
    published: Mapping[str, Published],
    *,
    name: str,
    column: str = "value",
    label: str = "",
    file: str | None = None,
    module: str = "",
    code: str = "",
) -> Figure:
    """Draw one panel per model: a column by normalized depth, its interval, and the bands.

    Where there is a `file`, its function `plot` draws the figure instead.
    """
    if file is None:
        return plot_by_depth(name, column, label, table, members, published, from_zero=False)
    with running(find_code(file, module), "plot") as own:
        figure = own.plot(table, members)
        if not isinstance(figure, Figure):
            raise VitscopeError(
                f"{file}: plot returned a {type(figure).__name__}, allowed: a matplotlib Figure."
            )
        return figure
