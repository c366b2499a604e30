from math import ceil, log10
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from vitscope.drawing.counts import count_rows
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.looks import BAR_ALPHA, DASHED, GRAY, NODE, PLAIN, ZERO, look_of
from vitscope.drawing.panels import stack_panels

_TITLES = {False: "on augmented images", True: "on clean images"}
# The width in inches above which a panel has room for every other power of ten.
_WIDE = 2.0
_LINES: dict[bool, dict[str, Any]] = {True: PLAIN, False: DASHED}


def _loss_terms_node_look(l2: bool, color: str) -> dict[str, Any]:
    """Return the look of a node: a pale disk with L2, a ring in front of it without L2.

    Both are visible even where they coincide.
    """
    if l2:
        return {**NODE, "mfc": to_rgba(color, BAR_ALPHA), "mec": "none", "zorder": 2}
    return {**NODE, "mfc": "none", "mec": color, "zorder": 3}


def plot_loss_terms(table: pd.DataFrame, members: Members) -> Figure:
    """Draw slices above spectra, with and without L2, in two columns per model.

    A model's first column shows augmented images, its second column clean images.
    """
    upper, lower = stack_panels(2 * len(members), 2)
    shown = [(member, clean) for member in members for clean in _TITLES]
    for above, below, (member, clean) in zip(upper.axes, lower.axes, shown, strict=True):
        rows, color = rows_of(table, member.model), look_of(member).color
        count_rows(rows[rows["clean"] == clean], above, below)
        for l2, line in _LINES.items():
            own = rows[(rows["clean"] == clean) & (rows["l2"] == l2)]
            losses = own[own["of"] == "slice"].groupby("x")["value"].mean()
            change, nodes = losses - losses.iloc[len(losses) // 2], own[own["of"] == "spectrum"]
            above.plot(change.index, change, color=color, **line)
            share = nodes["value"] / nodes["batch"].nunique()
            below.plot(nodes["x"], share, linestyle="", **_loss_terms_node_look(l2, color))
            said = "with L2" if l2 else "without L2"
            upper.legend.add_line(f"loss {said}", {"color": GRAY, **line})
            upper.legend.add_marker(f"eigenvalues {said}", _loss_terms_node_look(l2, GRAY))
        above.set_title(f"{member.label}\n{_TITLES[clean]}")
        above.sharey(upper.axes[0])
        below.sharex(lower.axes[0])
        below.sharey(lower.axes[0])
    largest = table.loc[table["of"] == "spectrum", "x"].abs().max()
    # Make the axis linear up to the weight decay, which is what the L2 term adds to eigenvalues.
    linear = table["weight_decay"].max()
    powers = 10.0 ** np.arange(ceil(log10(linear)) + 1, log10(largest), 2)
    if lower.figure.get_figwidth() / lower.columns <= _WIDE:
        powers = powers[-1:]
    for axes in lower.axes:
        axes.set(yscale="log")
        axes.set_xscale("symlog", linthresh=linear)
        axes.set(xticks=[*-powers[::-1], 0, *powers], xlim=(-2 * largest, 2 * largest))
        axes.axvline(0, **ZERO, zorder=0.5)
    upper.label("Random direction", "Change of the loss")
    return lower.finish("Eigenvalue of the Hessian", "Share of eigenvalues")
