"""What is known of networks: tables, the figures that are drawn of them, the paper's claims."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pandas as pd

from vitscope.claims.counting import add_recipes, count_claims, joined
from vitscope.claims.points import at_snapshots
from vitscope.claims.report import findings
from vitscope.claims.tables import CLAIMS
from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError, nearest
from vitscope.measures import registry
from vitscope.package_data import STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vitscope.claims.points import Published

# How fine figures are on a screen; files have the resolution of the style.
DOTS_PER_INCH = 150
# Tables beside those of measures.
OTHERS = ("blocks", "predictions")


class Tables:
    """Tables of one or several networks, by name or as attributes: `scope.feature_variance`."""

    # Subclasses say whose tables there are, and where they come from.
    members: Sequence[Member]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table by its name, as the workflow has it."""
        raise NotImplementedError

    def available(self) -> list[str]:
        """Return the names of the tables that exist or can be made."""
        raise NotImplementedError

    def own(self) -> dict[str, Any]:
        """Return what was measured by functions of the user, by their names: the calls of them."""
        return {}

    def __getattr__(self, name: str) -> pd.DataFrame:
        # What begins so is looked for by copy, pickle, pandas and notebooks.
        if name.startswith("_") or "members" not in vars(self):
            raise AttributeError(name)
        if name not in (*registry.names(), *OTHERS, *self.own()):
            raise AttributeError(
                f"there is no table '{name}'; there are {', '.join(self.available())}."
                f"{nearest(name, self.available())}"
            )
        return self.table(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.available()]

    def kinds(self) -> list[str]:
        """Return the kinds of figures that can be drawn."""
        there = set(self.available())
        trained = any(member.epoch is not None for member in self.members)
        found = [
            name
            for name, kind in registry.kinds().items()
            if there >= {*kind.tables} and (trained or not kind.by_epoch)
        ]
        return [*found, *self.own()]

    def plot(self, kind: str, ax: "Axes | None" = None, **options: Any) -> "Figure":
        """Draw a figure of a kind, as the workflow does, and save nothing.

        With `ax` it is drawn there, if it has a single panel. `options` are keys of the kind, as
        `over=True` for `attention_heads`.
        """
        known = () if kind in self.own() else _kind(kind).option_keys
        for name in options:
            if name not in known:
                raise VitscopeError(
                    f"Figures of the kind '{kind}' have no option '{name}', but "
                    f"{', '.join(known) or 'none'}.{nearest(name, known)}"
                )
        if kind in self.own():
            from vitscope.drawing.by_depth import plot

            by_depth = partial(plot, value="value", label=kind, from_zero=False)
            return draw_in(kind, ax, lambda: by_depth(self.table(kind), self.members))
        tables = {name: self.table(name) for name in _kind(kind).tables}
        return drawn(kind, tables, self.members, {}, self._snapshots(kind), ax, options)

    def claims(self, *kinds: str) -> pd.DataFrame:
        """Return what the paper claims, what was measured, and whether the claim holds.

        For some kinds of figures, or for all that need only a few passes of the images.
        """
        # Kinds that show one measure in several ways make the same claims.
        counted = self.counted(*kinds).drop_duplicates(["model", "versus", "claim"])
        labels = {member.model: member.label for member in self.members}
        return findings(counted, labels)

    def counted(self, *kinds: str) -> pd.DataFrame:
        """Return the same as a table of the workflow, `claims`."""
        chosen = kinds or self._quick_kinds()
        rows = [self._counted(kind) for kind in chosen]
        return add_recipes(joined(CLAIMS, [each for each in rows if each is not None]), {})

    def _quick_kinds(self) -> list[str]:
        """Return the kinds whose claims cost no more than a few passes of the images."""
        known = registry.kinds()
        there = [kind for kind in self.kinds() if kind in known]
        measures = {kind: registry.declared(known[kind].measure) for kind in there}
        return [kind for kind, measure in measures.items() if measure.needs != "loss"]

    def _counted(self, kind: str) -> pd.DataFrame | None:
        if kind in self.own():
            return None
        evidence = registry.claims_of(_kind(kind).measure).get(kind)
        if evidence is None:
            return None
        names = {evidence.table, "blocks"}
        tables = at_snapshots({name: self.table(name) for name in names}, self._snapshots(kind))
        models = [member.model for member in self.members]
        return count_claims(kind, evidence, tables, models, {}, {})

    def _snapshots(self, kind: str) -> list[str]:
        return []

    def _picture(self, member: Member) -> str:
        """Return a picture of where a network is read, for a page."""
        from vitscope.drawing.network import plot
        from vitscope.drawing.saving import style

        blocks = self.table("blocks")
        drawn = BytesIO()
        with style(STYLE):
            figure = plot(blocks[blocks["model"] == member.model], member.label)
            figure.savefig(drawn, format="svg", metadata={"Date": None})
        return drawn.getvalue().decode()

    def _repr_html_(self) -> str:
        """Return where the networks are read, as a table and a picture each."""
        columns = ["index", "name", "kind", "stage", "channels", "height", "width"]
        blocks = self.table("blocks")
        parts = []
        for member in self.members:
            rows = blocks[blocks["model"] == member.model][[*columns, "parameters", "operations"]]
            parts += [
                f"<h4>{escape(member.label)}</h4>",
                self._picture(member),
                f"<details><summary>{len(rows)} cut points</summary>",
                rows.to_html(index=False),
                "</details>",
            ]
        names = ", ".join(self.available())
        return "".join([*parts, f"<p>Tables: {escape(names)}</p>"])

    def __repr__(self) -> str:
        labels = ", ".join(member.label for member in self.members)
        return f"<{type(self).__name__} of {labels}; tables: {', '.join(self.available())}>"


def drawn(
    kind: str,
    tables: Mapping[str, pd.DataFrame],
    members: Sequence[Member],
    published: "Mapping[str, Published]",
    snapshots: Sequence[str],
    ax: "Axes | None",
    options: Mapping[str, Any],
) -> "Figure":
    """Draw a figure of a kind from its tables, in axes that are given, or else on its own."""
    from vitscope.drawing.figure import draw

    shown = _kind(kind)
    curves = published if shown.drawn_columns else None
    function, values = registry.drawing(shown), {**shown.values, **options}
    return draw_in(
        kind,
        ax,
        lambda: draw(function, tables, members, curves, snapshots, values),
    )


def draw_in(kind: str, ax: "Axes | None", plot: "Callable[[], Figure]") -> "Figure":
    """Draw a figure in axes that are given, or else on its own."""
    from vitscope.drawing.panels import drawing_in
    from vitscope.drawing.saving import style

    with style(STYLE), drawing_in(ax):
        figure = plot()
    if ax is None:
        figure.set_dpi(DOTS_PER_INCH)
        _show_in_notebooks()
    elif figure is not ax.figure.figure:
        raise VitscopeError(
            f"A figure of the kind '{kind}' is laid out as a whole, and cannot be drawn in axes "
            f"that are given: leave ax out, and take the figure that is returned."
        )
    return figure


def _kind(name: str) -> Any:
    if name not in registry.kinds():
        raise VitscopeError(
            f"There is no kind of figure '{name}'.{nearest(name, registry.kinds())} There are "
            f"{', '.join(sorted(registry.kinds()))}."
        )
    return registry.kinds()[name]


def _show_in_notebooks() -> None:
    """Tell a notebook how figures look; where pyplot was imported, it knows and does as it is set.

    Figures are drawn without pyplot, which would keep each of them until it is closed.
    """
    from matplotlib.figure import Figure

    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    pictures = shell.display_formatter.formatters["image/png"]
    if Figure not in pictures:
        pictures.for_type(Figure, _render)


def _render(figure: "Figure") -> bytes:
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=figure.dpi, bbox_inches="tight")
    return drawn.getvalue()
