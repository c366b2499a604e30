"""Tables of networks, and the figures and the claims that are made from these tables."""

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pandas as pd

from vitscope.claims.counting import count_by_recipe, count_claims, join_rows_of_figures
from vitscope.claims.doubts import doubt_claims
from vitscope.claims.intervals import without_resamples
from vitscope.claims.points import at_snapshots
from vitscope.claims.report import findings_as_table
from vitscope.claims.tables import CLAIMS
from vitscope.drawing.figure import Member, rows_of
from vitscope.errors import VitscopeError, nearest
from vitscope.measures import registry
from vitscope.package_data import STYLE
from vitscope.scopes.drawing import (
    DOTS_PER_INCH,
    draw_kind_from_tables,
    draw_styled,
    show_in_notebooks,
)
from vitscope.settings.snapshots import END

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Tables that belong to no measure.
OTHERS = ("blocks", "predictions")
# The keys of a figure of a function of the user's own.
_OF_OWN = ["change", "together", "by_epoch"]


class Tables:
    """Tables of one or several networks, by name or as attributes: `scope.feature_variance`."""

    # Set by subclasses, which implement `_whole_table` and `available` too.
    members: Sequence[Member]

    def table(self, name: str, resamples: bool = False) -> pd.DataFrame:
        """Return a table by its name.

        With `resamples`, as the workflow has it: with the values in 400 resamples of the images.
        """
        if sentence := self._explain_name_of_kind(name):
            raise VitscopeError(sentence)
        whole = self._whole_table(name)
        return whole if resamples else without_resamples(whole)

    def _whole_table(self, name: str) -> pd.DataFrame:
        raise NotImplementedError

    def available(self) -> list[str]:
        """Return the names of the tables that exist or can be made."""
        raise NotImplementedError

    def own(self) -> dict[str, Any]:
        """Return the calls of the user's functions that have measured, by the function's name."""
        return {}

    def _explain_name_of_kind(self, name: str) -> str | None:
        """Return which tables a kind of figure is drawn from, if no table has its name."""
        kinds = registry.kinds()
        if name not in kinds or name in (*registry.names(), *OTHERS, *self.own()):
            return None
        first, *others = (f"'{table}'" for table in kinds[name].tables)
        tables = f"tables are {', '.join([first, *others])}" if others else f"table is {first}"
        return f"'{name}' is a kind of figure: its {tables}, and plot('{name}') draws it."

    def __getattr__(self, name: str) -> pd.DataFrame:
        # Copy, pickle, pandas and notebooks look for names with an underscore.
        if name.startswith("_") or "members" not in vars(self):
            raise AttributeError(name)
        if name not in (*registry.names(), *OTHERS, *self.own()):
            raise AttributeError(
                self._explain_name_of_kind(name)
                or f"there is no table '{name}'; there are {', '.join(self.available())}."
                f"{nearest(name, self.available())}{registry.installed().left_out}"
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

        A figure of a single panel is drawn in `ax`, if given. `options` are keys of the kind, such
        as `over=True` for `attention_heads`.
        """
        known = _OF_OWN if kind in self.own() else [*registry.kind(kind).option_keys]
        for name in options:
            if name not in known:
                raise VitscopeError(
                    f"Figures of the kind '{kind}' have no option '{name}', but "
                    f"{', '.join(known) or 'none'}.{nearest(name, known)}"
                )
        if kind in self.own():
            from vitscope.measures.own.show import plot_by_depth

            table = self._whole_table(kind)
            members = self._members_of_figure(options)
            plot_own = partial(plot_by_depth, table, members, label=kind, **options)
            return draw_styled(kind, ax, plot_own)
        return self._draw_members(kind, self._members_of_figure(options), ax, options)

    def _members_of_figure(self, options: Mapping[str, Any]) -> Sequence[Member]:
        """Return the networks that a figure shows; by epoch, those whose epoch is known."""
        if not options.get("by_epoch"):
            return self.members
        members = [member for member in self.members if member.epoch is not None]
        if not members:
            raise VitscopeError(
                "Of no network here is it known after how many epochs it was measured: "
                "vitscope.watch and figures by epoch of a study know it."
            )
        return members

    def overview(self) -> "Figure":
        """Draw a page of the first network: its blocks, what is measured by depth, and verdicts."""
        from vitscope.drawing.network_page import plot_network_page
        from vitscope.drawing.saving import style
        from vitscope.jobs.figures import KINDS_OF_PAGE, panels_of_page

        there, member = self.kinds(), self.members[0]
        kinds = [kind for kind in KINDS_OF_PAGE if kind in there]
        blocks, claims = self._whole_table("blocks"), self.counted(*kinds)
        draw = [
            partial(self._draw_members, kind, self.members[:1], options=keys)
            for kind, keys in panels_of_page(kinds)
        ]
        of_first = claims["model"] == member.model
        with style(STYLE):
            figure = plot_network_page(
                member.label,
                rows_of(blocks, member.model),
                draw,
                claims[of_first],
                self._what_is_read(),
            )
        figure.set_dpi(DOTS_PER_INCH)
        figure.set_label(f"What is measured of {member.model} by depth, and verdicts")
        show_in_notebooks()
        return figure

    def _what_is_read(self) -> str | None:
        """Return how much of the first network is read; None if its tables do not say so."""
        return None

    def _draw_members(
        self, kind: str, members: Sequence[Member], ax: "Axes | None", options: Any = None
    ) -> "Figure":
        tables = {name: self._whole_table(name) for name in registry.kind(kind).tables}
        return draw_kind_from_tables(
            kind, tables, members, {}, self._snapshots_of_kind(kind), ax, options or {}
        )

    def claims(self, *kinds: str) -> pd.DataFrame:
        """Return what the paper claims, what was measured, and whether the claim holds.

        Covers the given kinds of figures; by default, kinds that take a few passes of the images.
        """
        # Kinds that show one measure in several ways make the same claims.
        counted = self.counted(*kinds).drop_duplicates(["model", "versus", "claim"])
        labels = {member.model: member.label for member in self.members}
        return findings_as_table(counted, labels)

    def counted(self, *kinds: str) -> pd.DataFrame:
        """Return the claims of some kinds of figures as the workflow's table `claims`."""
        known = registry.kinds()
        # Unless kinds are given, take kinds that cost no more than a few passes of the images.
        rows = [
            self._claims_of_kind(kind)
            for kind in kinds or (kind for kind in self.kinds() if kind in known)
            if kinds or not registry.declared(known[kind].measure).need.of_training
        ]
        joined = join_rows_of_figures(CLAIMS, [each for each in rows if each is not None])
        return count_by_recipe(doubt_claims(joined, *self._accuracies()), {})

    def _accuracies(self) -> tuple[dict[str, pd.DataFrame], dict[str, int | None]]:
        """Return the table of accuracies, if images have labels, and how many classes there are."""
        if "classification" not in self.available():
            return {}, {}
        classes = self._whole_table("predictions")["label"].nunique()
        known = {"classification": self._whole_table("classification")}
        return known, {member.model: classes for member in self.members}

    def _claims_of_kind(self, kind: str) -> pd.DataFrame | None:
        if kind in self.own():
            return None
        evidence = registry.claims_of(registry.kind(kind).measure).get(kind)
        if evidence is None:
            return None
        names = {evidence.table, "blocks"}
        tables = at_snapshots(
            {name: self._whole_table(name) for name in names}, self._snapshots_of_kind(kind)
        )
        models = [member.model for member in self.members]
        return count_claims(kind, evidence, tables, models, {}, {})

    def _snapshots_of_kind(self, kind: str) -> list[str]:
        return [END] if registry.kinds()[kind].snapshots else []

    def _picture_of_blocks(self, member: Member) -> str:
        from vitscope.drawing.network import plot_cut_points
        from vitscope.drawing.saving import style

        drawn = BytesIO()
        with style(STYLE):
            figure = plot_cut_points(
                rows_of(self._whole_table("blocks"), member.model), member.label
            )
            about = {"Date": None, "Title": f"Blocks of {member.label}, and their multiply-adds"}
            figure.savefig(drawn, format="svg", metadata=about)
        return drawn.getvalue().decode()

    def _repr_html_(self) -> str:
        """Show in a notebook where each network is read: a picture and a table of cut points."""
        columns = ["index", "name", "kind", "stage", "channels", "height", "width"]
        blocks = self._whole_table("blocks")
        parts = []
        for member in self.members:
            rows = rows_of(blocks, member.model)[[*columns, "parameters", "operations"]]
            parts += [
                f"<h4>{escape(member.label)}</h4>",
                self._picture_of_blocks(member),
                f"<details><summary>{len(rows)} cut points</summary>",
                rows.to_html(index=False),
                "</details>",
            ]
        names = ", ".join(self.available())
        return "".join([*parts, f"<p>Tables: {escape(names)}</p>"])

    def __repr__(self) -> str:
        labels = ", ".join(member.label for member in self.members)
        return f"<{type(self).__name__} of {labels}; tables: {', '.join(self.available())}>"
