import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Member, Members
from vitscope.drawing.looks import DASHED, DOTTED, GRAY, OF_ALL, Look, look_of
from vitscope.drawing.notes import write_over_panel
from vitscope.drawing.panels import stack_panels
from vitscope.errors import VitscopeError
from vitscope.files.pairs import PREFIXES

# The rows of panels: a label, the column, and how its barrier is written, with its unit.
_VALUES = (("Loss (NLL)", "nll", "{:.2f}", ""), ("Error (%)", "error", "{:.0f}", " points"))
# Whether statistics are reset, in the legend.
_CURVES = {False: "as interpolated", True: "running statistics reset"}
_BETWEEN = "between both ends"


def plot_interpolation(table: pd.DataFrame, members: Members) -> Figure:
    """Draw the loss of each pair in the table, in its order, and below it the error."""
    by_name = members_by_name("interpolation", table, members)
    pairs = table[["model", "other_model"]].drop_duplicates()
    stacked = stack_panels(len(pairs), len(_VALUES))
    for panels, (label, column, form, unit) in zip(stacked, _VALUES, strict=True):
        for axes, (first, second) in zip(panels.axes, pairs.itertuples(False, None), strict=True):
            rows = table[(table["model"] == first) & (table["other_model"] == second)]
            count_rows(rows, axes)
            if panels.titled:
                title = f"{by_name[first].label} to {by_name[second].label}"
                axes.set_title(panels.in_lines(title))
            barriers = _draw_lines(axes, rows, column, look_of(by_name[first]))
            said = [form.format(each) if pd.notna(each) else "not finite" for each in barriers]
            write_over_panel(axes, f"barrier {', reset '.join(said)}{unit}")
        for reset in sorted(table["reset"].unique()):
            panels.legend.add_line(_CURVES[reset], OF_ALL | (DASHED if reset else {}))
        panels.legend.add_line(_BETWEEN, {"color": GRAY, **DOTTED})
        if panels is not stacked[-1]:
            panels.label("", label, "shared")
    return panels.finish("Share of the second network's weights", label, "shared")


def members_by_name(name: str, table: pd.DataFrame, members: Members) -> dict[str, Member]:
    """Return members by the names of their models; refuse a table that lacks any of them."""
    by_name = {member.model: member for member in members}
    named = [f"{prefix}model" for prefix in PREFIXES if f"{prefix}model" in table]
    if missing := by_name.keys() - {*table[named].to_numpy().ravel()}:
        raise VitscopeError(
            f"The {name} table has no model '{min(missing)}': delete the table and run again."
        )
    return by_name


def _draw_lines(axes: Axes, rows: pd.DataFrame, column: str, look: Look) -> list[float]:
    """Draw the curves of a pair and a line between the ends of each; return their barriers."""
    barriers = []
    for reset, curve in rows.sort_values(["reset", "share"]).groupby("reset"):
        style = look.line | (DASHED if reset else {})
        axes.plot(curve["share"], curve[column], clip_on=False, zorder=3, **style)
        ends = curve.iloc[[0, -1]]
        axes.plot(ends["share"], ends[column], color=GRAY, zorder=2.5, **DOTTED)
        barriers.append(float(curve[f"{column}_excess"].max(skipna=False)))
    axes.set_xlim(0, 1)
    return barriers
