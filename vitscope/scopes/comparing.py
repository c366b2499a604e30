"""Several networks side by side: joint tables, and figures with a panel or a curve for each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from vitscope.claims.intervals import RESAMPLED, resampled_interval
from vitscope.drawing.figure import Member, rows_of
from vitscope.errors import VitscopeError
from vitscope.files.pairs import PREFIXES, pair_name
from vitscope.jobs.tables import find_table
from vitscope.measures import registry
from vitscope.scopes.scope import Scope
from vitscope.scopes.tables import OTHERS, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class _Compared(NamedTuple):
    """A network of a comparison, which calls it by its `member`; its own tables name it `model`."""

    member: Member
    scope: Tables
    model: str


class Comparison(Tables):
    """Several networks: each table has the rows of all of them."""

    def __init__(self, networks: Sequence[_Compared]) -> None:
        self._networks = networks
        self.members = [each.member for each in networks]

    def _whole_table(self, name: str) -> pd.DataFrame:
        """Return a table with the rows of all networks; `model` names the network."""
        self._measure_others(name)
        calls = [each.scope.own().get(name) for each in self._networks]
        called = zip(self._networks, calls, strict=True)
        unlike = [each.member.label for each, call in called if call != calls[0]]
        if unlike:
            raise VitscopeError(
                f"'{name}' was not measured of {', '.join(unlike)} by the function and with the "
                f"keywords of {self._networks[0].member.label}: measure all in the same way."
            )
        size = registry.declared(name).models if name in registry.names() else 1
        if size > len(self._networks):
            raise VitscopeError(f"{name} takes {size} networks: compare as many, or more.")
        if size > 1:
            groups = combinations(self._networks, size)
            tables = [self._table_of_group(name, *each) for each in groups]
        else:
            tables = [_rows_of_network(each, name) for each in self._networks]
        return pd.concat(tables, ignore_index=True)

    def kinds(self) -> list[str]:
        """Return the kinds of figures that can be drawn for at least one of the networks."""
        there = {*super().kinds()}.union(*(each.scope.kinds() for each in self._networks))
        order = dict.fromkeys((*registry.kinds(), *sorted(there)))
        return [kind for kind in order if kind in there]

    def plot(self, kind: str, ax: "Axes | None" = None, **options: Any) -> "Figure":
        """Draw a figure of a kind for the networks that have it; print the names of the others.

        A figure of a single panel is drawn in `ax`, if given. `options` are keys of the kind, such
        as `over=True` for `attention_heads`.
        """
        return super(Comparison, self._having_kind(kind)).plot(kind, ax, **options)

    def overview(self) -> "Figure":
        """Draw a page of the first network: its blocks, what is measured by depth, and verdicts."""
        return super(Comparison, Comparison(self._networks[:1])).overview()

    def _measure_others(self, name: str) -> None:
        """Measure every network in memory with the user's function that measured one of them."""
        scopes = [each.scope for each in self._networks if isinstance(each.scope, Scope)]
        call = next((each.calls[name] for each in scopes if name in each.calls), None)
        for scope in scopes:
            if call is not None and name not in scope.own():
                call(scope)

    def _claims_of_kind(self, kind: str) -> pd.DataFrame | None:
        return super(Comparison, self._having_kind(kind))._claims_of_kind(kind)

    def _having_kind(self, kind: str) -> "Comparison":
        """Return a comparison of the networks that can draw a kind; print the names of the others.

        Return this comparison if it can draw the kind as a whole, or if none of its networks can.
        """
        self._measure_others(kind)
        if kind in super().kinds():
            return self
        having = [each for each in self._networks if kind in each.scope.kinds()]
        if having:
            others = ", ".join(e.member.label for e in self._networks if e not in having)
            print(f"vitscope: {kind} is left out for {others}, which cannot be measured for it.")
        return Comparison(having) if having else self

    def available(self) -> list[str]:
        """Return the names of the tables that exist, or can be made, for all networks."""
        shared = set.intersection(*(set(each.scope.available()) for each in self._networks))
        scopes = [each.scope for each in self._networks if isinstance(each.scope, Scope)]
        of_several = {
            name
            for name in registry.names()
            if 1 < (size := registry.declared(name).models) <= len(scopes) == len(self._networks)
            and not any(_why_not_of_group(name, *each) for each in combinations(scopes, size))
        }
        there = [name for name in (*OTHERS, *registry.names()) if name in shared | of_several]
        return [*there, *self.own()]

    def own(self) -> dict[str, Any]:
        """Return the first network's calls of the user's functions that measured all networks."""
        first, *others = (each.scope.own() for each in self._networks)
        return {name: call for name, call in first.items() if all(name in each for each in others)}

    def changes(self, name: str) -> pd.DataFrame:
        """Return how the values of a table differ from those of the first network, in pairs.

        For each row and value that has resamples: the `first` value, the `value`, their `change`,
        and its 95 % interval over the images, which are the same for both. Rows are matched by all
        columns that are no numbers with a point.
        """
        whole = self.table(name, resamples=True)
        values = [str(c).removesuffix(RESAMPLED) for c in whole if str(c).endswith(RESAMPLED)]
        if not values:
            raise VitscopeError(
                f"{name} has no values with resamples, which changes are tested by."
            )
        others = {"model", *(f"{value}{RESAMPLED}" for value in values)}
        names = [str(column) for column in whole if column not in others]
        keys = [name for name in names if whole[name].dtype.kind != "f"]
        tables: list[pd.DataFrame] = [rows_of(whole, each.member.model) for each in self._networks]
        changes = [
            _changes_of_value(tables[0], table, keys, value)
            for table in tables[1:]
            for value in values
        ]
        return pd.concat(changes, ignore_index=True)

    def _table_of_group(self, name: str, *networks: _Compared) -> pd.DataFrame:
        scopes = [each.scope for each in networks if isinstance(each.scope, Scope)]
        if len(scopes) < len(networks):
            labels = " or ".join(each.member.label for each in networks)
            raise VitscopeError(
                f"{name} needs the networks, and {labels} is known by its tables alone."
            )
        called = zip(PREFIXES, networks, strict=False)
        names = {f"{prefix}model": each.member.model for prefix, each in called}
        return _measure_group_of_scopes(name, *scopes).assign(**names)

    def _snapshots_of_kind(self, kind: str) -> list[str]:
        return self._networks[0].scope._snapshots_of_kind(kind)


def _changes_of_value(
    first: pd.DataFrame, other: pd.DataFrame, keys: list[str], value: str
) -> pd.DataFrame:
    kept = [*keys, value, f"{value}{RESAMPLED}"]
    pairs = other[["model", *kept]].merge(first[kept], on=keys, suffixes=("", "_first"))
    if len(pairs) != len(other) or len(pairs) != len(first):
        raise VitscopeError(
            "The networks have rows that are not of the same cut points and images: compare scopes "
            "of one network, with and without interventions."
        )
    found = pairs[["model", *keys]].assign(
        of=value, first=pairs[f"{value}_first"], value=pairs[value]
    )
    resampled = zip(pairs[f"{value}{RESAMPLED}"], pairs[f"{value}{RESAMPLED}_first"], strict=True)
    none = (np.nan, np.nan)
    ends = [
        none if a is None or b is None else resampled_interval(np.subtract(a, b)) or none
        for a, b in resampled
    ]
    changed: pd.DataFrame = found.assign(
        change=found["value"] - found["first"],
        ci_low=[low for low, _ in ends],
        ci_high=[high for _, high in ends],
    )
    return changed


def _rows_of_network(network: _Compared, name: str) -> pd.DataFrame:
    table = network.scope._whole_table(name)
    rows = rows_of(table, network.model) if "model" in table else table
    return rows.assign(model=network.member.model)


def _measure_group_of_scopes(name: str, *scopes: Scope) -> pd.DataFrame:
    """Measure networks that were looked at with the same images together; return the table."""
    first, *others = makers = [each._maker for each in scopes]
    ours = first.images
    for theirs in (other.images for other in others):
        if len(ours.sums) != len(theirs.sums) or (
            ours.shape == theirs.shape and (ours.sums != theirs.sums).any()
        ):
            raise VitscopeError(
                f"{name} is of the same images for all networks, and they were looked at with "
                f"others: give all the same, in the same order."
            )
    if why := _why_not_of_group(name, *scopes):
        raise VitscopeError(why)
    measure = registry.declared(name)
    if not measure.in_parts:
        return find_table(name).read(first.make_line(measure, others))
    inputs = {
        f"{prefix}{what}": made
        for prefix, maker in zip(PREFIXES, makers, strict=False)
        for what, made in (("parts", maker.parts(measure)), ("blocks", maker.make("blocks")))
    }
    pair = pair_name(maker.model for maker in makers)
    path = first.path(name).with_name(f"{pair}.parquet")
    first.run("merge", inputs, {"table": path}, {"measure": name, "model": pair})
    return find_table(name).read(path)


def _why_not_of_group(name: str, one: Scope, *others: Scope) -> str | None:
    """Say in a sentence why networks cannot be measured together; return None if they can."""
    if registry.declared(name).in_parts:
        return None
    reasons = (one._maker.why_no_line(name, other._maker) for other in others)
    return next(filter(None, reasons), None)


def compare(scopes: Mapping[str, Tables]) -> Comparison:
    """Put networks side by side: `compare({"mine": scope, "theirs": other}).plot("cka")`.

    If one value holds several networks, each is named by the given name, followed by its own name.
    """
    if not isinstance(scopes, Mapping):
        raise VitscopeError(
            f"vitscope.compare takes a dict, which names the networks, and was given a "
            f"{type(scopes).__name__}: write compare({{'mine': scope, 'theirs': other}})."
        )
    networks = []
    for name, scope in scopes.items():
        if not isinstance(scope, Tables):
            raise VitscopeError(
                f"{name} is a {type(scope).__name__}, allowed: what vitscope.look or vitscope.read "
                f"returns."
            )
        alone = len(scope.members) == 1
        for member in scope.members:
            called = name if alone else f"{name} {member.label}"
            shown = replace(member, model=called, label=called)
            networks.append(_Compared(shown, scope, member.model))
    if not networks:
        raise VitscopeError("There is nothing to compare: give at least one network.")
    return Comparison(networks)
