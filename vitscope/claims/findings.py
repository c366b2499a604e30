"""What a study found: some of its figures, each with a sentence that its verdicts make."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from vitscope.claims.across_networks import (
    Across,
    across_networks,
    common_statement,
    of_the_paper,
)
from vitscope.claims.counting import once_per_recipe
from vitscope.claims.report import value_as_text
from vitscope.claims.verdicts import say_doubt

# More networks than these are counted and not named.
_NAMED = 2


class Finding(NamedTuple):
    """A figure, the verdict on a claim about it, and what the study found, in a sentence."""

    figure: str
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Shown:
    """A figure: the question that it belongs to, and whether it shows the change over a block."""

    question: str
    change: bool = False


def findings_of_study(
    claims: pd.DataFrame,
    figures: Mapping[str, Shown],
    order: Sequence[str],
    labels: Mapping[str, str],
    count: int,
) -> list[Finding]:
    """Return up to `count` findings, in the order of `figures`; each is about another claim.

    Claims of the paper come first, and of these one for each question, before any question has a
    second one. Of a question, verdicts on recipes come first, open ones last. A figure that counts
    several claims shows the first of these, by `order`. Of figures that count the same claim, one
    that shows the change over each block is chosen: it shows what is counted.
    """
    once = once_per_recipe(claims)
    known = once[once["holds"].notna()]
    best: dict[str, tuple[tuple[bool, ...], str]] = {}
    for claim in order:
        rows = known[known["claim"] == claim]
        if rows.empty:
            continue
        counting = dict.fromkeys(claims.loc[claims["claim"] == claim, "figure"])
        figure = max(counting, key=lambda name: figures[name].change)
        if figure not in best or _rank(rows) < best[figure][0]:
            best[figure] = _rank(rows), claim
    first = sorted(best, key=lambda name: (best[name][0], [*figures].index(name)))
    seen: dict[tuple[str, bool], list[str]] = {}
    for name in first:
        seen.setdefault((figures[name].question, best[name][0][0]), []).append(name)
    nth = {name: at for same in seen.values() for at, name in enumerate(same)}
    chosen = sorted(first, key=lambda name: (best[name][0][0], nth[name], best[name][0]))[:count]
    return [
        _find(name, known[known["claim"] == best[name][1]], claims, labels)
        for name in figures
        if name in chosen
    ]


def _rank(rows: pd.DataFrame) -> tuple[bool, bool, bool]:
    """Return how late the rows of a claim are shown: not the paper's, open, of no recipe."""
    undecided = across_networks(rows).verdict == "open"
    return not of_the_paper(rows).any(), undecided, not rows["holds"].isin(["yes", "no"]).any()


def _find(
    figure: str, rows: pd.DataFrame, claims: pd.DataFrame, labels: Mapping[str, str]
) -> Finding:
    """Say what rows of one claim found; name the networks of the figure before others."""
    drawn = {*claims.loc[claims["figure"] == figure, "model"]}
    found = across_networks(rows.sort_values("model", key=lambda each: ~each.isin(drawn)))
    return Finding(figure, found.verdict, _say_finding(found, common_statement(rows), labels))


def _say_finding(found: Across, statement: str, labels: Mapping[str, str]) -> str:
    rows = pd.concat(found)
    moments = rows["snapshot"].nunique() > 1
    first, said = rows.index[0], []
    for does, each in zip(("holds for", "fails for", "is open for"), found, strict=True):
        named = each if len(each) <= _NAMED + 1 else each.iloc[:_NAMED]
        shown = [
            f"{_name(row, labels, moments)} ({_value(row, units=at == first)}){say_doubt(row)}"
            for at, row in zip(named.index, named.to_dict("records"), strict=True)
        ]
        if shown:
            rest = f" and {len(each) - len(named)} more" if len(named) < len(each) else ""
            said.append(f"{does} {', '.join(shown)}{rest}")
    return f"{statement}: {'; '.join(said)}."


def _name(row: Mapping[Hashable, Any], labels: Mapping[str, str], moments: bool) -> str:
    models = (labels[row[each]] for each in ("model", "versus") if pd.notna(row[each]))
    name = " against ".join(models)
    return f"{name} at {row['snapshot']}" if moments else name


def _value(row: Mapping[Hashable, Any], units: bool) -> str:
    """Return what a row counts, from the fewest to the most of its trainings, or its value."""
    measure = str(row["measure"])
    if pd.isna(row["measured_total"]):
        value = value_as_text(row, row["measured_value"])
        return f"{measure}: {value}" if units else value
    counts = row["values"] if row["trainings"] > 1 else [row["measured_count"]]
    low, high = (f"{end:.0f}" for end in (min(counts), max(counts)))
    text = f"{low if low == high else f'{low} to {high}'} of {row['measured_total']:.0f}"
    return f"{text} {measure.removeprefix('share of ')}" if units else text
