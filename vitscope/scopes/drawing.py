"""Draw figures in a notebook: in the style of figures, and shown without pyplot."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pandas as pd

from vitscope.claims.points import PublishedCurve
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.measures.captions import title_of
from vitscope.package_data import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The resolution on a screen; files have the resolution of the style.
DOTS_PER_INCH = 150


def draw_kind_from_tables(
    kind: str,
    tables: Mapping[str, pd.DataFrame],
    members: Sequence[Member],
    published: Mapping[str, PublishedCurve],
    snapshots: Sequence[str],
    ax: "Axes | None",
    options: Mapping[str, Any],
) -> "Figure":
    """Draw a figure of a kind from its tables, in the given axes or as a figure of its own."""
    from vitscope.drawing.from_tables import draw_from_tables

    shown = registry.kind(kind)
    curves = published if shown.drawn_columns else None
    function, values = shown.draw, {**shown.values, **options}
    return draw_styled(
        kind, ax, partial(draw_from_tables, function, tables, members, curves, snapshots, values)
    )


def draw_styled(kind: str, ax: "Axes | None", plot: "Callable[[], Figure]") -> "Figure":
    """Call `plot` in the style of figures; it draws in `ax` or, without `ax`, in a new figure."""
    from vitscope.drawing.figure import drawing_in
    from vitscope.drawing.saving import style

    with style(STYLE), drawing_in(ax):
        figure = plot()
    if ax is None:
        figure.set_dpi(DOTS_PER_INCH)
        known = registry.kinds().get(kind)
        figure.set_label(title_of(known) if known else kind)
        show_in_notebooks()
    elif figure is not ax.figure.figure:
        raise VitscopeError(
            f"A figure of the kind '{kind}' is laid out as a whole, and cannot be drawn in axes "
            f"that are given: leave ax out, and take the figure that is returned."
        )
    return figure


def show_in_notebooks() -> None:
    """Register how notebooks render figures: pyplot, which would keep every figure, is not used."""
    from matplotlib.figure import Figure

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    pictures = shell.display_formatter.formatters["image/png"]
    if Figure not in pictures:
        pictures.for_type(Figure, _png_of_figure)


def _png_of_figure(figure: "Figure") -> tuple[bytes, dict[str, str]]:
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=figure.dpi, bbox_inches="tight")
    return drawn.getvalue(), {"alt": str(figure.get_label())}
