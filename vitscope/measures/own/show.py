"""Draw the figure of a user's own measure: with the `plot` of its file, or else by depth."""

import pandas as pd
from matplotlib.figure import Figure

from vitscope.drawing.changes import Change
from vitscope.drawing.charts import Chart, Rows, Steps
from vitscope.drawing.figure import Members
from vitscope.errors import VitscopeError
from vitscope.networks.building.own_code import find_code, running_user_code


def plot_by_depth(
    table: pd.DataFrame,
    members: Members,
    *,
    label: str,
    together: bool = False,
    change: bool = False,
    by_epoch: bool = False,
) -> Figure:
    change_of = Change(f"Change of {label[0].lower()}{label[1:]}")
    chart = Chart(Rows(label, Steps("value", change=change_of)))
    return chart(table, members=members, together=together, change=change, by_epoch=by_epoch)


def plot(table: pd.DataFrame, members: Members, *, file: str, module: str, code: str) -> Figure:
    """Draw a figure with the function `plot` of a user's file.

    `code` is the digest of the code that runs: an argument only so that the job depends on it.
    """
    with running_user_code(find_code(file, module), "plot") as own:
        figure = own.plot(table, members)
        if not isinstance(figure, Figure):
            raise VitscopeError(
                f"{file}: plot returned a {type(figure).__name__}, allowed: a matplotlib Figure."
            )
        return figure
